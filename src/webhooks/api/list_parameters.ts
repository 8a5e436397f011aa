import {
  choiceSchema,
  idSchema,
  integerSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { cursorPattern, type ListName } from "../model/cursor.ts";
import type { OperationAnswer } from "./operation.ts";
import { kindSchema } from "./text_forms.ts";

/** Records on a page when a call does not set `limit`. */
export const DEFAULT_LIMIT = 50;
/** Most records on a page. */
export const MAX_LIMIT = 200;

const LIMIT: SchemaProperties = {
  limit: integerSchema("Maximum number of records to return.", {
    minimum: 1,
    maximum: MAX_LIMIT,
    default: DEFAULT_LIMIT,
  }),
};
const SINCE_UNTIL: SchemaProperties = {
  since: timeSchema("Only records created at this time or later."),
  until: timeSchema("Only records created before this time."),
};

/** The parameters of a page; `cursors` is the pattern of the cursors of the list. */
export function pageParameters(cursors: string): SchemaProperties {
  return { ...LIMIT, cursor: textSchema("`nextCursor` of the previous page.", { pattern: `^${cursors}$` }) };
}

/** The filter by the kind of an event. */
export const EVENT_FILTER: SchemaProperties = {
  event: kindSchema("Only this kind of event; a pattern is refused."),
};
/** The filter by the action of an entry of the audit log. */
export const ACTION_FILTER: SchemaProperties = {
  event: kindSchema("Only this action, such as `delivery.failed`."),
};
/** The filter by an endpoint. */
export const ENDPOINT_FILTER: SchemaProperties = {
  endpointId: idSchema("Only deliveries to this endpoint."),
};
/** The filter by an event. */
export const EVENT_ID_FILTER: SchemaProperties = {
  eventId: idSchema("Only deliveries of this event."),
};

/** The filter by a state. */
export function stateFilter(states: readonly string[]): SchemaProperties {
  return { state: choiceSchema(states, "Only records in this state.") };
}

/** The parameters of a list: paging, times, and further filters. */
export function listParameters(list: ListName, filters: SchemaProperties = {}): SchemaProperties {
  return { ...filters, ...SINCE_UNTIL, ...pageParameters(cursorPattern(list)) };
}

/** The answer of a list. */
export function pageAnswer(item: JsonSchema, example: unknown): OperationAnswer {
  const schema = objectSchema({ items: listSchema(item, "The newest first.") }, {
    nextCursor: textSchema("The `cursor` of the next page; absent on the last page."),
  });
  return { description: "A page of records.", schema, example: { items: [example] } };
}
