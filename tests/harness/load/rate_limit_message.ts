import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";

/** The method that the bench calls. */
export const RATE_LIMIT_PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** The window of every rule of the bench, by the value of the entry `load`; no run outlives a year. */
const WINDOWS = { one: "year", keys: "year", second: "second", events: "year" } as const;
/** The name of a rule. */
export type RuleName = keyof typeof WINDOWS;
/** Every rule. */
export const RULE_NAMES: readonly RuleName[] = ["one", "keys", "second", "events"];

/**
 * What may be sent: `one` is for one hot key, `keys` for many, `both` for many with two limits each, `events` for many
 * of which one in a hundred is over its limit, in shadow mode.
 */
export const LOADS = ["one", "keys", "both", "events"] as const;
/** The name of a load. */
export type LoadName = typeof LOADS[number];
/** The rules that a call of each load meets with every key. */
export const RULES_OF: Readonly<Record<LoadName, readonly RuleName[]>> = {
  one: ["one"],
  keys: ["keys"],
  both: ["keys", "second"],
  events: ["events"],
};

/** The limit of every rule of the bench; no run reaches it. */
export const LIMIT = 4_000_000_000;
/** Keys that end like this are over their limit. */
const OVER_LIMIT =
  `{ key: key, value: "*00", shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 0 } }`;
/** The file of all rules. */
export const RULES = `domain: bench
descriptors:
${RULE_NAMES.map(ruleText).join("\n")}
`;
/** The same, where the rule of the keys that are over their limit has events. */
export const RULES_WITH_EVENTS: string = RULES.replace(
  "shadow_mode: true",
  "shadow_mode: true, events: [over_limit]",
);

function ruleText(rule: RuleName): string {
  const limit = `{ key: key, rate_limit: { unit: ${WINDOWS[rule]}, requests_per_unit: ${LIMIT} } }`;
  const rules = rule === "events" ? `${limit}, ${OVER_LIMIT}` : limit;
  return `  - { key: load, value: ${rule}, descriptors: [${rules}] }`;
}

const CODES = ["UNKNOWN", "OK", "OVER_LIMIT"] as const;
const FRAME_PREFIX_BYTES = 5;
const LIMIT_REMAINING_FIELD = 3;

/** The name of a code in an answer. */
export type AnswerCode = typeof CODES[number];

/** What a `RateLimitResponse` says, as far as the bench looks. */
export interface ResponseSummary {
  readonly overallCode: AnswerCode;
  readonly statuses: readonly { readonly code: AnswerCode; readonly limitRemaining: number }[];
}

/** Whether counters of this rule are still there when a run is over. */
export function isLasting(rule: RuleName): boolean {
  return WINDOWS[rule] === "year";
}

/** A `RateLimitRequest` of domain `bench`: for each key and rule a descriptor of `load=<rule>` and `key=<key>`. */
export function encodeRequest(load: LoadName, keys: readonly string[]): Uint8Array {
  const descriptors = keys.flatMap((key) =>
    RULES_OF[load].map((rule) => ({ entries: [{ key: "load", value: rule }, { key: "key", value: key }] }))
  );
  return encodeRateLimitRequest({ domain: "bench", descriptors });
}

/** The message behind the prefix of gRPC: not compressed, and its length. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(FRAME_PREFIX_BYTES + message.length);
  new DataView(framed.buffer).setUint32(1, message.length);
  framed.set(message, FRAME_PREFIX_BYTES);
  return framed;
}

/** The message of a body that holds exactly one, not compressed; throws `RangeError` for any other. */
export function unframeMessage(body: Uint8Array): Uint8Array {
  const length = body.length < FRAME_PREFIX_BYTES
    ? -1
    : new DataView(body.buffer, body.byteOffset).getUint32(1);
  if (length !== body.length - FRAME_PREFIX_BYTES || body[0] !== 0) {
    throw new RangeError(
      `Cannot read gRPC body of "${body.length}" bytes: it must be one whole plain message`,
    );
  }
  return body.subarray(FRAME_PREFIX_BYTES);
}

/**
 * What a `RateLimitResponse` says. Walks all its fields by a reader of the bench's own, so that a fault
 * of the service's codec is seen, and throws `RangeError` where one is bad.
 */
export function readResponse(message: Uint8Array): ResponseSummary {
  let overallCode: AnswerCode = "UNKNOWN";
  const statuses: { code: AnswerCode; limitRemaining: number }[] = [];
  for (const { field, value, bytes, at } of fieldsOf(message)) {
    if ((field === 1) !== (bytes === undefined)) throw badAnswer(at);
    if (bytes === undefined) overallCode = codeOf(value, at);
    else if (field === 2) statuses.push(readStatus(bytes));
  }
  return { overallCode, statuses };
}

function readStatus(message: Uint8Array): { code: AnswerCode; limitRemaining: number } {
  const status: { code: AnswerCode; limitRemaining: number } = { code: "UNKNOWN", limitRemaining: 0 };
  for (const { field, value, at } of fieldsOf(message)) {
    if (field === 1) status.code = codeOf(value, at);
    else if (field === LIMIT_REMAINING_FIELD) status.limitRemaining = value;
  }
  return status;
}

interface Field {
  readonly field: number;
  /** Of a number; of bytes their length. */
  readonly value: number;
  readonly bytes: Uint8Array | undefined;
  readonly at: number;
}

function fieldsOf(message: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  while (at < message.length) {
    const tag = varint(message, at);
    const wireType = tag.value & 7;
    if (wireType !== 0 && wireType !== 2) throw badAnswer(at);
    const { value, end } = varint(message, tag.end);
    const next = wireType === 0 ? end : end + value;
    if (next > message.length) throw badAnswer(at);
    const bytes = wireType === 0 ? undefined : message.subarray(end, next);
    fields.push({ field: tag.value >> 3, value, bytes, at });
    at = next;
  }
  return fields;
}

function codeOf(value: number, at: number): AnswerCode {
  const code = CODES[value];
  if (code === undefined) throw badAnswer(at);
  return code;
}

function badAnswer(at: number): RangeError {
  return new RangeError(`Cannot read answer at byte "${at}": it must be a RateLimitResponse`);
}

function varint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0;
  for (let index = 0; index < 5; index++) {
    const byte = bytes[start + index];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, end: start + index + 1 };
  }
  throw badAnswer(start);
}
