import { errorText } from "../base/error_text.ts";
import { decodeRateLimitResponse } from "../wire/rls.ts";
import type { ByteRange } from "./pending_calls.ts";

/** The codes of an answer by their numbers. */
export const ANSWER_CODES = ["UNKNOWN", "OK", "OVER_LIMIT"] as const;
type AnswerCode = typeof ANSWER_CODES[number];

/** Bytes before the statuses of a message. */
const CODE_BYTES = 2;
/** The first bytes of fields: overall code, status, code of a status, its current limit. */
const TAGS = { overallCode: 0x08, status: 0x12, code: 0x08, currentLimit: 0x12 } as const;

/** Counts decisions by their overall code, for calls with the same number of descriptors. */
export class DecisionTally {
  readonly #descriptors: number;
  readonly #counts: Record<AnswerCode, number> = { UNKNOWN: 0, OK: 0, OVER_LIMIT: 0 };
  #withoutLimit = 0;

  constructor(descriptors: number) {
    this.#descriptors = descriptors;
  }

  /** Number of decisions by overall code. */
  get counts(): Readonly<Record<AnswerCode, number>> {
    return this.#counts;
  }

  /** Decisions in which no descriptor had a limit; part of `counts`. */
  get withoutLimit(): number {
    return this.#withoutLimit;
  }

  /** Counts the decision in an answer; returns what is wrong with the answer, if anything. */
  add(message: ByteRange): string | undefined {
    if (this.#addUsual(message)) return undefined;
    try {
      const { bytes, start, end } = message;
      const { overallCode, statuses } = decodeRateLimitResponse(bytes.subarray(start, end));
      if (statuses.length !== this.#descriptors) {
        return `${statuses.length} statuses instead of ${this.#descriptors}`;
      }
      const code = ANSWER_CODES[overallCode];
      if (code === undefined) return `unknown overall code ${overallCode}`;
      this.#count(code, statuses.some(({ currentLimit }) => currentLimit !== undefined));
      return undefined;
    } catch (error) {
      return `the answer cannot be read: ${errorText(error)}`;
    }
  }

  /** Counts a message in the usual form, without a copy: the overall code, then short statuses that begin with their code. */
  #addUsual({ bytes, start, end }: ByteRange): boolean {
    if (end - start < CODE_BYTES || bytes[start] !== TAGS.overallCode) return false;
    const overallCode = ANSWER_CODES[bytes[start + 1] ?? 0];
    if (overallCode === undefined) return false;
    let hasLimit = false;
    let at = start + CODE_BYTES;
    for (let index = 0; index < this.#descriptors; index++) {
      const length = bytes[at + 1] ?? 0;
      if (bytes[at] !== TAGS.status || length > 0x7f || bytes[at + 2] !== TAGS.code) return false;
      if (length > 2 && bytes[at + 4] === TAGS.currentLimit) hasLimit = true;
      at += 2 + length;
    }
    if (at !== end) return false;
    this.#count(overallCode, hasLimit);
    return true;
  }

  #count(code: AnswerCode, hasLimit: boolean): void {
    this.#counts[code]++;
    if (!hasLimit) this.#withoutLimit++;
  }
}
