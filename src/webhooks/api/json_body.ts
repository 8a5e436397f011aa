import { type JsonObject, type JsonValue, nestingProblem, parseJson } from "../../base/exact_json.ts";
import { WebhookRefusal } from "./problem.ts";

/** How deep the body of a call may be nested. */
export const MAX_NESTING = 64;

/**
 * The object that a body holds, its numbers with every digit. Throws a `WebhookRefusal`: 400 for what is no JSON, 422
 * for what is no object or nested too deep.
 */
export function jsonObjectOf(body: string): JsonObject {
  const value = plainJson(body);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refusal(422, "not_an_object", "a JSON object is wanted");
  }
  const problem = nestingProblem(body, MAX_NESTING);
  if (problem !== undefined) throw refusal(422, "too_deep", `nested deeper than ${MAX_NESTING}`);
  return parseJson(body, value) as JsonObject;
}

/** The parser of the runtime does not mind how deep a text is nested. */
function plainJson(body: string): JsonValue {
  try {
    return JSON.parse(body);
  } catch {
    throw refusal(400, "malformed_json", body === "" ? "it is empty" : "it is not JSON");
  }
}

function refusal(status: number, code: string, state: string): WebhookRefusal {
  return new WebhookRefusal({ status, code, field: "body", detail: `Cannot read the body: ${state}` });
}
