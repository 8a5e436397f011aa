import { closedSchema, listSchema, objectSchema, schemaOf, textSchema } from "../../base/json_schema.ts";
import type { Resource } from "../resources/field.ts";
import { camelCase, listFields, listSchemas } from "./list_query.ts";
import type { AdministrationOperation, OperationAnswer } from "./operation.ts";

/** The body of a call that needs none. */
export const EMPTY_BODY = { schema: closedSchema({}), example: {}, isOptional: true } as const;

/** `GET /<list>`: a page of a list; `item` is the name of the schema of its records. */
export function listOperation(resource: Resource, item: string, example: unknown): AdministrationOperation {
  const { list, items = list.replace("-", " ") } = resource;
  const schema = objectSchema({ items: listSchema(schemaOf(item), "The newest first.") }, {
    nextCursor: textSchema("The `cursor` of the next page; absent on the last page."),
  });
  const answer = { description: "A page of records.", schema, example: { items: [example] } };
  const shown = readOperation(camelCase(`list-${list}`), `List ${items}`, answer);
  return { ...shown, query: listSchemas(listFields(resource)) };
}

/** A call that changes nothing. */
export function readOperation(id: string, summary: string, answer: OperationAnswer): AdministrationOperation {
  return { id, role: "read", summary, answers: { 200: answer } };
}

/** A call that deletes or revokes; `done` describes its answer. */
export function removal(id: string, summary: string, done: string): AdministrationOperation {
  return { id, role: "admin", summary, answers: { 204: { description: done } } };
}
