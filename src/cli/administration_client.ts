import { errorText } from "../base/error_text.ts";
import { isRawNumber, type JsonObject, type JsonValue, parseJson } from "../base/exact_json.ts";
import type { AdministrationCall } from "./administration_call.ts";
import type { Target } from "./administration_target.ts";
import { CommandError } from "./command_input.ts";
import { plainText, shortened } from "./plain_text.ts";
import { isRecord } from "./record_text.ts";

/** What the administration answered. */
export interface AdministrationAnswer {
  /** As it came; empty for none. */
  readonly text: string;
  /** The object that the text is; an empty one for none. */
  readonly record: JsonObject;
}

const MAX_ANSWER_BYTES = 256 * 1_024 * 1_024;
const MAX_DETAIL = 1_000;

/**
 * Makes a call of the administration. Throws a `CommandError` of one line when there is no answer, or one that is not
 * 2xx; the line holds neither token nor body.
 */
export async function callAdministration(
  words: string,
  target: Target,
  call: AdministrationCall,
): Promise<AdministrationAnswer> {
  // Loaded here, so that the service starts without it.
  const { send } = await import("../rest/mod.ts");
  const { url, token, timeoutMs } = target;
  const request = {
    method: call.method,
    baseURL: `${url}/api/v1${call.path}`,
    headers: { ...call.headers, authorization: `Bearer ${token}`, accept: "application/json" },
    queryParams: call.query,
    body: call.body,
  };
  // A redirect would carry the token to where nobody sent it.
  const options = {
    totalTimeoutMs: timeoutMs,
    redirect: "manual",
    maxResponseBytes: MAX_ANSWER_BYTES,
  } as const;
  const response = await send(request, options).catch((error: unknown) => {
    throw new CommandError(plainText(errorText(error)), { cause: error });
  });
  const { statusCode, body } = response;
  const record = objectOf(body);
  if (statusCode < 200 || statusCode > 299) {
    // What a list is asked for is all in its flags.
    const isUsage = statusCode === 422 && call.method === "GET";
    throw new CommandError(refusalLine(words, statusCode, record), { isUsage });
  }
  if (record === undefined && body !== "") {
    throw new CommandError(`Cannot run "${words}": the answer of ${url} is not an object of JSON`);
  }
  return { text: body, record: record ?? {} };
}

/** The problem details of a refusal in one line. */
function refusalLine(words: string, status: number, problem: JsonObject | undefined): string {
  const text = (name: string) => {
    const value = problem?.[name];
    return typeof value === "string" && value !== "" ? shortened(plainText(value), MAX_DETAIL) : undefined;
  };
  const code = text("code");
  const detail = text("detail") ?? text("title") ?? "nothing of ours answers there";
  const field = text("field");
  const facts = [
    ...(field === undefined || detail.includes(`"${field}"`) ? [] : [`field "${field}"`]),
    ...(text("requestId") === undefined ? [] : [`request ${text("requestId")}`]),
  ];
  const tail = facts.length === 0 ? "" : ` (${facts.join(", ")})`;
  const name = [status, ...(code === undefined ? [] : [code])].join(" ");
  return `Cannot run "${words}": ${name}: ${detail}${tail}${hint(status, code)}`;
}

/** What is most likely wrong where the answer itself cannot say it. */
function hint(status: number, code: string | undefined): string {
  if (status === 401) return "; ADMIN_TOKEN or -token-file names another token than that of the service";
  if (status === 404 && code !== "not_found") {
    return "; is ADMIN_TOKEN set for the service, and does -url name its ADMIN_ADDR where it has one?";
  }
  return "";
}

function objectOf(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = parseJson(text);
    return isRecord(value) && !isRawNumber(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
