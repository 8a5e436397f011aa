import { createHash } from "node:crypto";
import type { ConditionalLimit, JointLimits } from "../../../ratelimit/algorithms/conditional_limit.ts";
import type { Taken } from "../../../ratelimit/algorithms/taken.ts";
import { respArgument, RespWriter } from "../resp.ts";
import { BUCKET_SCRIPT } from "./bucket.ts";
import { JOINT_SCRIPT } from "./joint.ts";
import { LEASES_SCRIPT } from "./leases.ts";
import { SLICES_SCRIPT } from "./slices.ts";

/** A script that takes conditional hits of one counter, as a command up to the number of keys. */
interface Script {
  readonly source: Uint8Array;
  readonly hash: Uint8Array;
}

const SCRIPTS: Readonly<Record<ConditionalLimit["kind"] | "joint", Script>> = {
  slices: script(SLICES_SCRIPT),
  bucket: script(BUCKET_SCRIPT),
  leases: script(LEASES_SCRIPT),
  joint: script(JOINT_SCRIPT),
};
const NOTHING = new Uint8Array(0);
/** The command, the script, and the number of keys; then, for each, a key, an expiry and a limit. */
const PARTS = 3;
const PARTS_PER_KEY = 3;
const BYTES_PER_DOUBLE = 8;
/** Numbers in the reply for each addend. */
const NUMBERS = 5;

/** The numbers of a limit are written once: a limit is that of a rule. */
const limitArguments = new WeakMap<ConditionalLimit | JointLimits, readonly Uint8Array[]>();

/** The addends of one key, or of several windows, that go to its script together. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly limit: ConditionalLimit | JointLimits;
  /** By key. */
  readonly expiresInSeconds: readonly number[];
  readonly addends: readonly number[];
  /** Of leases, one per addend; otherwise empty. */
  readonly holders: readonly string[];
}

/** Writes a call by the hash of its script, or with the script itself, which the server then knows. */
export function writeScriptCall(writer: RespWriter, call: ScriptCall, isWithSource: boolean): void {
  const { keys, limit, expiresInSeconds, addends, holders } = call;
  const { source, hash } = SCRIPTS["kind" in limit ? limit.kind : "joint"];
  const parts = PARTS + keys.length * PARTS_PER_KEY + addends.length + holders.length;
  writer.text(`*${parts}\r\n`).bytes(isWithSource ? source : hash).argument(keys.length);
  for (const key of keys) writer.argument(key);
  const limits = argumentsOf(limit);
  for (let index = 0; index < limits.length; index++) {
    writer.argument(expiresInSeconds[index] ?? 0).bytes(limits[index] ?? NOTHING);
  }
  for (let index = 0; index < addends.length; index++) {
    writer.argument(addends[index] ?? 0);
    const holder = holders[index];
    if (holder !== undefined) writer.argument(holder);
  }
}

/** The outcome of each addend; undefined for another reply than that of a script. */
export function parseTaken(
  reply: unknown,
  { addends, keys, limit }: Pick<ScriptCall, "addends" | "keys" | "limit">,
): Taken[] | undefined {
  if (!Array.isArray(reply) || reply.length !== addends.length * keys.length * NUMBERS) return undefined;
  const numbers: readonly unknown[] = reply;
  if (!numbers.every((number) => typeof number === "number" && number >= 0)) return undefined;
  if ("kind" in limit) return addends.map((_, index) => takenAt(numbers, index));
  return addends.map((_, index) => {
    const windows = keys.map((_, window) => takenAt(numbers, index * keys.length + window));
    return {
      ...takenAt(numbers, index * keys.length),
      granted: windows.every(({ granted }) => granted),
      windows,
    };
  });
}

function takenAt(numbers: readonly unknown[], index: number): Taken {
  const at = index * NUMBERS;
  return {
    granted: numbers[at] === 1,
    used: Number(numbers[at + 1]),
    available: Number(numbers[at + 2]),
    retryMs: Number(numbers[at + 3]),
    freeMs: Number(numbers[at + 4]),
  };
}

function script(source: string): Script {
  const hash = createHash("sha1").update(source).digest("hex");
  return { source: command("EVAL", source), hash: command("EVALSHA", hash) };
}

function command(name: string, script: string): Uint8Array {
  return new RespWriter().argument(name).argument(script).finish();
}

/** By key. */
function argumentsOf(limit: ConditionalLimit | JointLimits): readonly Uint8Array[] {
  let known = limitArguments.get(limit);
  if (known === undefined) {
    known = "kind" in limit ? [respArgument(limitBytes(limit))] : limit.limits.map(windowArgument);
    limitArguments.set(limit, known);
  }
  return known;
}

/** The first letter of the algorithm, and the limit. */
function windowArgument(limit: JointLimits["limits"][number]): Uint8Array {
  if (typeof limit === "number") return respArgument(`w${limit}`);
  return respArgument(Uint8Array.of(limit.kind.charCodeAt(0), ...limitBytes(limit)));
}

/** The argument of a script for a limit: its numbers as big-endian doubles. */
export function limitBytes(limit: ConditionalLimit): Uint8Array<ArrayBuffer> {
  const numbers = numbersOf(limit);
  const doubles = new DataView(new ArrayBuffer(BYTES_PER_DOUBLE * numbers.length));
  for (const [index, number] of numbers.entries()) doubles.setFloat64(BYTES_PER_DOUBLE * index, number);
  return new Uint8Array(doubles.buffer);
}

function numbersOf(limit: ConditionalLimit): readonly number[] {
  switch (limit.kind) {
    case "slices":
      return [limit.limit, limit.sliceUs];
    case "bucket":
      return [limit.burst, limit.partsPerHit, limit.partsPerTick, limit.tickUs];
    case "leases":
      return [limit.limit, limit.leaseUs];
  }
}
