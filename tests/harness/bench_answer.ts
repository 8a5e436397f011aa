import { ANSWER_CODES } from "../../src/load/decision_tally.ts";
import type { ByteRange, MessageCheck } from "../../src/load/pending_calls.ts";
import { decodeRateLimitResponse, type WireRateLimitResponse } from "../../src/wire/rls.ts";
import { WireWriter } from "../../src/wire/writer.ts";
import { LIMIT } from "./bench_rules.ts";

/** The content of an expected response: the bytes of the request, or a response with this overall code. */
export type ExpectedCode = "echo" | "OK" | "OVER_LIMIT";

/** An expected response. */
export interface Expectation {
  readonly code: ExpectedCode;
  /** Descriptors of a request, each of which has a status in the answer. */
  readonly descriptors: number;
  /** The count that every counter is to have after the call; absent where any is right. */
  readonly count?: number | undefined;
  /** Every status must have the limit of the rules of the bench. */
  readonly hasLimit?: boolean | undefined;
  /** Some services answer without any status. */
  readonly areStatusesOptional?: boolean | undefined;
}

/** Checks that each answer is as expected. */
export function messageCheck(expected: Expectation): MessageCheck {
  return (message, request) => messageProblem(message, request, expected);
}

/** The problem of a response, if any. `request` is the message that was sent. */
export function messageProblem(
  message: ByteRange,
  request: Uint8Array,
  expected: Expectation,
): string | undefined {
  const { bytes, start, end } = message;
  if (expected.code === "echo") {
    return end - start === request.length && request.every((byte, index) => byte === bytes[start + index])
      ? undefined
      : "the answer is not the request";
  }
  if (expected.code === "OK" && expected.count === undefined && isPlainOk(message, expected)) {
    return undefined;
  }
  try {
    return responseProblem(decodeRateLimitResponse(bytes.subarray(start, end)), expected);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function responseProblem(
  { overallCode, statuses }: WireRateLimitResponse,
  expected: Expectation,
): string | undefined {
  const { code, descriptors, count, hasLimit, areStatusesOptional } = expected;
  const overall = ANSWER_CODES[overallCode];
  if (overall !== code) return `overall code ${overall} instead of ${code}`;
  if (statuses.length === 0 && areStatusesOptional === true) return undefined;
  if (statuses.length !== descriptors) return `${statuses.length} statuses instead of ${descriptors}`;
  const wrong = statuses.find((status) => code === "OK" && ANSWER_CODES[status.code] !== "OK");
  if (wrong !== undefined) return `a status with code ${ANSWER_CODES[wrong.code]}`;
  const limits = statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit);
  const otherLimit = limits.findIndex((limit) => limit !== LIMIT);
  if (hasLimit === true && otherLimit >= 0) {
    return `limit ${limits[otherLimit] ?? "missing"} instead of ${LIMIT}`;
  }
  if (count === undefined) return undefined;
  const other = statuses.find(({ limitRemaining }) => LIMIT - limitRemaining !== count);
  return other === undefined ? undefined : `count ${LIMIT - other.limitRemaining} instead of ${count}`;
}

/** The begin of a current limit: its requests per unit. */
const LIMIT_BYTES = limitBytes();

/**
 * Returns whether these are the bytes of an answer in its usual form: the overall code OK, and so many statuses
 * that begin with the code OK and, if expected, the limit. Anything else is read in full.
 */
function isPlainOk({ bytes, start, end }: ByteRange, { descriptors, hasLimit }: Expectation): boolean {
  if (end - start < 2 || bytes[start] !== 0x08 || bytes[start + 1] !== 1) return false;
  let at = start + 2;
  for (let index = 0; index < descriptors; index++) {
    const length = bytes[at + 1] ?? 0;
    if (bytes[at] !== 0x12 || length > 0x7f || bytes[at + 2] !== 0x08 || bytes[at + 3] !== 1) return false;
    if (hasLimit === true && !hasPlainLimit(bytes, at + 4)) return false;
    at += 2 + length;
  }
  return at === end;
}

function limitBytes(): Uint8Array {
  const writer = new WireWriter();
  writer.uint32(1, LIMIT);
  return writer.finish();
}

function hasPlainLimit(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== 0x12) return false;
  for (let index = 0; index < LIMIT_BYTES.length; index++) {
    if (bytes[at + 2 + index] !== LIMIT_BYTES[index]) return false;
  }
  return true;
}
