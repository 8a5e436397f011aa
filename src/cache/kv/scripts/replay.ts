import {
  type JointLimits,
  type StateLimit,
  stateSize,
  take,
} from "../../../ratelimit/algorithms/conditional_limit.ts";
import type { Taken } from "../../../ratelimit/algorithms/taken.ts";
import { takenIn, takeTogether } from "../../joint_counter.ts";

/** The value of a key before a call of a script, one character a byte. */
export type StoredState = string | null;

const BYTES_PER_DOUBLE = 8;
/** Of a bucket from before its rate was stored. */
const DOUBLES_WITHOUT_RATE = 2;
const MOST_DOUBLES = 32;
const bytes = new Uint8Array(MOST_DOUBLES * BYTES_PER_DOUBLE);
const doubles = new DataView(bytes.buffer);
const SCRATCH = {
  slices: new Float64Array(stateSize("slices")),
  bucket: new Float64Array(stateSize("bucket")),
};

/** The outcomes of addends in one counter that had this state: those of the core, as the script has taken them. */
export function replayTakes(
  limit: StateLimit,
  { nowUs, stored, addends }: {
    readonly nowUs: number;
    readonly stored: StoredState;
    readonly addends: readonly number[];
  },
): Taken[] {
  const state = readState(SCRATCH[limit.kind], limit, stored);
  return addends.map((addend) => take(state, 0, limit, nowUs, addend));
}

/** The same in several windows, whose hits are taken in all of them or in none. */
export function replayJointTakes(
  { limits }: JointLimits,
  { nowUs, stored, addends }: {
    readonly nowUs: number;
    readonly stored: readonly StoredState[];
    readonly addends: readonly number[];
  },
): Taken[] {
  const windows = limits.map((limit, index) => windowOf(limit, stored[index] ?? null, nowUs));
  return addends.map((addend) => takeTogether(addend, (hits) => windows.map((takeOne) => takeOne(hits))));
}

function windowOf(
  limit: JointLimits["limits"][number],
  stored: StoredState,
  nowUs: number,
): (hits: number) => Taken {
  if (typeof limit !== "number") {
    const state = readState(new Float64Array(stateSize(limit.kind)), limit, stored);
    return (hits) => take(state, 0, limit, nowUs, hits);
  }
  let used = Number(stored ?? 0);
  return (hits) => takenIn(used = Math.max(0, used + hits), limit);
}

/** Reads big-endian doubles; a state of another form is that of a new counter. */
function readState(state: Float64Array, limit: StateLimit, stored: StoredState): Float64Array {
  const count = (stored ?? "").length / BYTES_PER_DOUBLE;
  state.fill(0);
  if (limit.kind === "bucket") state[DOUBLES_WITHOUT_RATE] = limit.partsPerTick;
  const isKnown = count === state.length || (limit.kind === "bucket" && count === DOUBLES_WITHOUT_RATE);
  if (!isKnown || stored === null) return state;
  for (let at = 0; at < stored.length; at++) bytes[at] = stored.charCodeAt(at);
  for (let index = 0; index < count; index++) state[index] = doubles.getFloat64(index * BYTES_PER_DOUBLE);
  return state;
}
