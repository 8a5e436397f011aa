import {
  closedSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  textSchema,
} from "../../base/json_schema.ts";
import type { Fields, Resource } from "../resources/field.ts";
import { listSchemas } from "./list_query.ts";
import type { AdministrationOperation, OperationAnswer } from "./operation.ts";

/** The body of a call that needs none. */
export const EMPTY_BODY = { schema: closedSchema({}), example: {}, isOptional: true } as const;

/** `GET /<list>`: a page of a list, by these parameters. */
export function listOperation(
  { list, items = list.replace("-", " ") }: Resource,
  parameters: Fields,
  item: JsonSchema,
  example: unknown,
): AdministrationOperation {
  const schema = objectSchema({ items: listSchema(item, "The newest first.") }, {
    nextCursor: textSchema("The `cursor` of the next page; absent on the last page."),
  });
  const answer = { description: "A page of records.", schema, example: { items: [example] } };
  const id = `list-${list}`.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return { ...readOperation(id, `List ${items}`, answer), query: listSchemas(parameters) };
}

/** A call that changes nothing. */
export function readOperation(id: string, summary: string, answer: OperationAnswer): AdministrationOperation {
  return { id, role: "read", summary, answers: { 200: answer } };
}

/** A call that deletes or revokes; `done` describes its answer. */
export function removal(id: string, summary: string, done: string): AdministrationOperation {
  return { id, role: "admin", summary, answers: { 204: { description: done } } };
}
