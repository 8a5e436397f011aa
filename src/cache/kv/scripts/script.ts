import { createHash } from "node:crypto";
import type {
  ConditionalLimit,
  JointLimits,
  StateLimit,
} from "../../../ratelimit/algorithms/conditional_limit.ts";
import type { Taken } from "../../../ratelimit/algorithms/taken.ts";
import { respArgument, RespWriter } from "../resp.ts";
import { BUCKET_SCRIPT } from "./bucket.ts";
import { JOINT_SCRIPT } from "./joint.ts";
import { LEASES_SCRIPT } from "./leases.ts";
import { replayJointTakes, replayTakes, type StoredState } from "./replay.ts";
import { SLICES_SCRIPT } from "./slices.ts";

/** A script that takes conditional hits, as a command up to the number of keys. */
interface Script {
  readonly source: Uint8Array;
  readonly hash: Uint8Array;
}

/** The clock of the server, in microseconds since the epoch. */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]`;
/** The sources of all scripts. */
export const SCRIPT_SOURCES: Readonly<Record<ConditionalLimit["kind"] | "joint", string>> = {
  slices: forKeys("slices", SLICES_SCRIPT, 152),
  bucket: forKeys("bucket", BUCKET_SCRIPT, 16),
  leases: LEASES_SCRIPT,
  joint: NOW + JOINT_SCRIPT,
};
const SCRIPTS = {
  slices: script(SCRIPT_SOURCES.slices),
  bucket: script(SCRIPT_SOURCES.bucket),
  leases: script(SCRIPT_SOURCES.leases),
  joint: script(SCRIPT_SOURCES.joint),
} as const;
const NOTHING = new Uint8Array(0);
/** The command, the script, and the number of keys. */
const PARTS = 3;
const BYTES_PER_DOUBLE = 8;
/** Numbers in the reply of leases for each addend. */
const NUMBERS = 5;

/** The numbers of a limit are written once: a limit is that of a rule. */
const limitArguments = new WeakMap<ConditionalLimit | JointLimits, readonly Uint8Array[]>();

/** The addends of one key, or of several windows, that go to a script together. */
export interface ScriptTake {
  readonly keys: readonly string[];
  /** By key. */
  readonly expiresInSeconds: readonly number[];
  readonly addends: readonly number[];
  /** Of leases, one per addend; otherwise empty. */
  readonly holders: readonly string[];
}

/** Takes with the same limit. More than one are for slices and buckets, and leave out keys without a state. */
export interface ScriptCall {
  readonly limit: ConditionalLimit | JointLimits;
  readonly takes: readonly ScriptTake[];
}

/** Writes a call by the hash of its script, or with the script itself, which the server then knows. */
export function writeScriptCall(
  writer: RespWriter,
  { limit, takes }: ScriptCall,
  isWithSource: boolean,
): void {
  const { source, hash } = SCRIPTS["kind" in limit ? limit.kind : "joint"];
  const limits = argumentsOf(limit);
  const isOfState = isStateLimit(limit);
  let keyCount = 0;
  let parts = PARTS + limits.length;
  for (const { keys, addends, holders } of takes) {
    keyCount += keys.length;
    parts += 2 * keys.length + (isOfState ? 1 : 0) + addends.length + holders.length;
  }
  writer.text(`*${parts}\r\n`).bytes(isWithSource ? source : hash).argument(keyCount);
  for (const { keys } of takes) {
    for (const key of keys) writer.argument(key);
  }
  if (isOfState) writer.bytes(limits[0] ?? NOTHING);
  for (const { keys, expiresInSeconds, addends, holders } of takes) {
    for (let index = 0; index < keys.length; index++) {
      writer.argument(expiresInSeconds[index] ?? 0);
      if (!isOfState) writer.bytes(limits[index] ?? NOTHING);
    }
    if (isOfState) writer.argument(addends.length);
    for (let index = 0; index < addends.length; index++) {
      writer.argument(addends[index] ?? 0);
      const holder = holders[index];
      if (holder !== undefined) writer.argument(holder);
    }
  }
}

/** The outcomes of the addends of each take, `null` for one to be repeated alone; undefined for another reply. */
export function parseTaken(reply: unknown, { limit, takes }: ScriptCall): (Taken[] | null)[] | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [first] = takes;
  if (first === undefined) return undefined;
  if ("kind" in limit && limit.kind === "leases") {
    const taken = parseNumbers(reply, first.addends.length);
    return taken === undefined ? undefined : [taken];
  }
  const nowUs: unknown = reply[0];
  const stored: unknown[] = reply.slice(1);
  if (typeof nowUs !== "number" || nowUs < 0 || !stored.every(isStored)) return undefined;
  if (!("kind" in limit)) {
    if (stored.length !== first.keys.length) return undefined;
    const taken = replayJointTakes(limit, { nowUs, stored, addends: first.addends });
    return taken.every(isPossible) ? [taken] : undefined;
  }
  if (stored.length !== takes.length) return undefined;
  const isAlone = takes.length === 1;
  const outcomes = takes.map(({ addends }, index) => {
    const state = stored[index] ?? null;
    if (state === null && !isAlone) return null;
    const taken = replayTakes(limit, { nowUs, stored: state, addends });
    return taken.every(isPossible) ? taken : null;
  });
  return isAlone && outcomes[0] === null ? undefined : outcomes;
}

/** True for numbers of a counter: a state that another program has written may bring any. */
function isPossible({ used, available, retryMs, freeMs, windows }: Taken): boolean {
  return used >= 0 && isCount(available) && isCount(retryMs) && isCount(freeMs) &&
    (windows === undefined || windows.every((one) => typeof one !== "number" && isPossible(one)));
}

function isCount(number: number): boolean {
  return number >= 0 && number <= Number.MAX_SAFE_INTEGER;
}

/** True if the counter is a state of a few numbers, which a call may have many of. */
export function isStateLimit(limit: ConditionalLimit | JointLimits): limit is StateLimit {
  return "kind" in limit && limit.kind !== "leases";
}

function isStored(value: unknown): value is StoredState {
  return value === null || typeof value === "string";
}

function parseNumbers(reply: readonly unknown[], count: number): Taken[] | undefined {
  if (reply.length !== count * NUMBERS) return undefined;
  if (!reply.every((number) => typeof number === "number" && number >= 0)) return undefined;
  return Array.from({ length: count }, (_, index) => {
    const [granted, ...numbers] = reply.slice(index * NUMBERS, (index + 1) * NUMBERS).map(Number);
    const [used = 0, available = 0, retryMs = 0, freeMs = 0] = numbers;
    return { granted: granted === 1, used, available, retryMs, freeMs };
  });
}

/**
 * A script for the counters of any number of keys. Its arguments are the limit, and for each key its expiry in seconds,
 * the number of its addends, and these. Several keys are counted only if they have states, of this length at least: a
 * proxy may have sent a key to another server than the first one. Returns the time and the states before the call.
 */
function forKeys(name: string, source: string, stateBytes: number): string {
  return `${NOW}${source}
local take, states, first, reply = ${name}(ARGV[1]), nil, 2, {now}
if #KEYS == 1 then states = {redis.call('GET', KEYS[1])} else states = redis.call('MGET', unpack(KEYS)) end
for index = 1, #KEYS do
  local stored, last = states[index], first + 1 + ARGV[first + 1]
  if #KEYS > 1 and stored and #stored < ${stateBytes} then stored = false end
  if stored or #KEYS == 1 then take(KEYS[index], stored, ARGV[first], ARGV, first + 2, last) end
  reply[index + 1] = stored
  first = last + 1
end
return reply`;
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
