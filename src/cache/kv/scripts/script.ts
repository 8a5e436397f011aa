import { createHash } from "node:crypto";
import type { ConditionalLimit } from "../../../ratelimit/algorithms/conditional_limit.ts";
import type { Taken } from "../../../ratelimit/algorithms/taken.ts";
import { respArgument, RespWriter } from "../resp.ts";
import { BUCKET_SCRIPT } from "./bucket.ts";
import { SLICES_SCRIPT } from "./slices.ts";

/** A script that takes conditional hits of one counter, as arguments of a command up to the key. */
interface Script {
  readonly source: Uint8Array;
  readonly hash: Uint8Array;
}

const SCRIPTS: Readonly<Record<ConditionalLimit["kind"], Script>> = {
  slices: script(SLICES_SCRIPT),
  bucket: script(BUCKET_SCRIPT),
};
const ONE_KEY = respArgument("1");
const EVAL = respArgument("EVAL");
const EVALSHA = respArgument("EVALSHA");
/** The command, the script, the number of keys, the key, and the expiry. */
const PARTS = 5;
/** Numbers in the reply for each addend. */
const NUMBERS = 5;

/** The numbers of a limit are written once: a limit is that of a rule. */
const limitArguments = new WeakMap<
  ConditionalLimit,
  { readonly bytes: Uint8Array; readonly count: number }
>();

/** The addends of one key that go to its script together. */
export interface ScriptCall {
  readonly key: string;
  readonly limit: ConditionalLimit;
  readonly expiresInSeconds: number;
  readonly addends: readonly number[];
}

/** Writes a call by the hash of its script, or with the script itself, which the server then knows. */
export function writeScriptCall(writer: RespWriter, call: ScriptCall, isWithSource: boolean): void {
  const { key, limit, expiresInSeconds, addends } = call;
  const { source, hash } = SCRIPTS[limit.kind];
  const { bytes, count } = argumentsOf(limit);
  writer.text(`*${PARTS + count + addends.length}\r\n`).bytes(isWithSource ? EVAL : EVALSHA);
  writer.bytes(isWithSource ? source : hash).bytes(ONE_KEY).bytes(respArgument(key));
  writeNumber(writer, expiresInSeconds);
  writer.bytes(bytes);
  for (const addend of addends) writeNumber(writer, addend);
}

/** What became of each addend; undefined for another reply than that of a script. */
export function parseTaken(reply: unknown, { addends }: ScriptCall): Taken[] | undefined {
  if (!Array.isArray(reply) || reply.length !== addends.length * NUMBERS) return undefined;
  const numbers: readonly unknown[] = reply;
  if (!numbers.every((number) => typeof number === "number" && number >= 0)) return undefined;
  return addends.map((_, index) => {
    const at = index * NUMBERS;
    return {
      granted: numbers[at] === 1,
      used: Number(numbers[at + 1]),
      available: Number(numbers[at + 2]),
      retryMs: Number(numbers[at + 3]),
      freeMs: Number(numbers[at + 4]),
    };
  });
}

function script(source: string): Script {
  const hash = createHash("sha1").update(source).digest("hex");
  return { source: respArgument(source), hash: respArgument(hash) };
}

function argumentsOf(limit: ConditionalLimit): { readonly bytes: Uint8Array; readonly count: number } {
  let known = limitArguments.get(limit);
  if (known === undefined) {
    const numbers = limit.kind === "slices"
      ? [limit.limit, limit.sliceUs]
      : [limit.burst, limit.partsPerHit, limit.partsPerTick, limit.tickUs];
    const writer = new RespWriter();
    for (const number of numbers) writeNumber(writer, number);
    limitArguments.set(limit, known = { bytes: writer.finish(), count: numbers.length });
  }
  return known;
}

function writeNumber(writer: RespWriter, value: number): void {
  const text = String(value);
  writer.text(`$${text.length}\r\n${text}\r\n`);
}
