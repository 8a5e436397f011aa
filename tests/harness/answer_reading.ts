import { assert, assertEquals } from "#assert";
import { Buffer } from "node:buffer";
import type { ResponseHead } from "../../src/net/outbound/response_head.ts";
import { ResponseParser } from "../../src/net/outbound/response_parser.ts";
import { SendError } from "../../src/net/outbound/send_error.ts";
import { seededRandom } from "./seeded_random.ts";

/** The outcome of reading a response: an error by its code, or by its kind if it has none. */
export interface Read {
  /** Known from the end of the status line on. */
  readonly status?: number | undefined;
  readonly body: string;
  /** `clean`: another request may follow; `open`: more is to come. */
  readonly state: "clean" | "over" | "open" | "cut" | string;
}

/** Options of a read. */
export interface ReadOptions {
  readonly isHeadOnly?: boolean;
  /** True if the connection ends behind the bytes. */
  readonly isEnded?: boolean;
}

/** Reads an answer that comes in these pieces. */
export function read(
  pieces: readonly Buffer<ArrayBuffer>[],
  { isHeadOnly = false, isEnded }: ReadOptions,
): Read {
  const begun: ResponseHead[] = [];
  const heads: ResponseHead[] = [];
  let body = "";
  const reader = new ResponseParser({
    onStatus: (head) => void begun.push(head),
    onHead: (head) => void heads.push(head),
    onBody: (piece) => body += Buffer.from(piece).toString("latin1"),
  }, isHeadOnly);
  let state = "";
  try {
    for (const piece of pieces) reader.push(piece);
    if (isEnded === true && !reader.isOver) state = reader.end() ? "over" : "cut";
  } catch (error) {
    assert(error instanceof SendError && error.kind === "protocol", Deno.inspect(error));
    state = error.code ?? "";
  }
  assert(heads.length <= begun.length && begun.length <= 1);
  if (state === "") state = reader.isClean ? "clean" : reader.isOver ? "over" : "open";
  return { ...(begun[0] === undefined ? {} : { status: begun[0].status }), body, state };
}

/** Begins an answer. */
export const OK = "HTTP/1.1 200 OK\r\n";
/** Ends the head, and the answer after its body. */
export const LENGTH = "content-length: 2\r\n\r\nok";
/** Ends the head of an answer in chunks. */
export const CHUNKED = "transfer-encoding: chunked\r\n\r\n";

/** Cuts bytes into pieces of these sizes. */
export function cut(bytes: Buffer<ArrayBuffer>, size: () => number): readonly Buffer<ArrayBuffer>[] {
  const pieces: Buffer<ArrayBuffer>[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + size());
    pieces.push(bytes.subarray(at, end));
    at = end;
  }
  return pieces;
}

/** Parts of answers, in every order. */
const PARTS = [
  ...[OK, LENGTH, CHUNKED, "\r\n", "\n", "\r", "HTTP/1.", "1 200", "HTTP/1.1 100 C\r\n\r\n", "0\r\n\r\n"],
  ...[
    "2\r\nok\r\n",
    "content-length: ",
    "x-a: b\r\n",
    ":",
    ";",
    " ",
    "\0",
    "\xff",
    "f",
    "connection: close\r\n",
  ],
];

/** Reads so many answers at random: the same is read however they are cut, and nothing else is thrown. */
export function readAtRandom(rounds: number, seed: number): void {
  const random = seededRandom(seed);
  const pick = (most: number) => Math.floor(random() * most);
  const ends = new Set<string>();
  for (let count = 0; count < rounds; count++) {
    let text = random() < 0.8 ? OK : "";
    for (let left = pick(8); left > 0; left--) text += PARTS[pick(PARTS.length)] ?? "";
    const bytes = Buffer.from(text, "latin1");
    if (random() < 0.3 && bytes.length > 0) bytes[pick(bytes.length)] = pick(256);
    const options = { isHeadOnly: random() < 0.1, isEnded: random() < 0.5 };
    const whole = read([bytes], options);
    ends.add(whole.state);
    assertEquals(read(cut(bytes, () => 1 + pick(12)), options), whole, JSON.stringify(text));
  }
  // The table reaches what chance does not.
  assert(ends.size >= 9, [...ends].join(" "));
}
