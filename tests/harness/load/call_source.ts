import { encodeFrame, FLAGS, FRAME_TYPES } from "./h2_frames.ts";
import { encodeRequest, frameMessage, type LoadName } from "./rate_limit_message.ts";

/** The longest body of a call: it fits into every frame and into every window that a server may sensibly give. */
export const MAX_BODY_BYTES = 1_024;
/** Calls that are made once and kept; more than these are made anew each time. */
const MAX_KEPT = 20_000;

/** What is sent for one call, behind its HEADERS frame. */
export interface LoadCall {
  /** The DATA frame, with the stream's number to be filled in. */
  readonly frame: Uint8Array;
  /** The payload of it. */
  readonly body: Uint8Array;
}

/** Which calls are made. */
export interface CallSourceOptions {
  readonly load: LoadName;
  /** Different keys. */
  readonly keys: number;
  /** Keys a call, each with a descriptor for every rule of the load. */
  readonly batch: number;
  /** Each key is this many further than the one before it. */
  readonly stride: number;
  /** The number of the first key; 0 when absent. */
  readonly firstKey?: number;
}

/** Makes calls whose keys go round, `k0`, `k1` and so on. */
export class CallSource {
  readonly #options: CallSourceOptions;
  readonly #kept: LoadCall[] = [];
  readonly #cycle: number;
  #taken = 0;

  constructor(options: CallSourceOptions) {
    this.#options = options;
    // After so many calls the keys are at the beginning again.
    this.#cycle = options.keys / greatestDivisor(options.keys, options.batch * options.stride);
    if (this.#cycle > MAX_KEPT) return;
    for (let index = 0; index < this.#cycle; index++) this.#kept.push(this.#make(index));
  }

  /** Calls that were taken. */
  get taken(): number {
    return this.#taken;
  }

  /** The next call in turn. */
  next(): LoadCall {
    const index = this.#taken++ % this.#cycle;
    return this.#kept[index] ?? this.#make(index);
  }

  #make(index: number): LoadCall {
    const { load, keys, batch, stride, firstKey = 0 } = this.#options;
    const names = Array.from({ length: batch }, (_, place) => {
      return `k${firstKey + (index * batch + place) * stride % keys}`;
    });
    const body = frameMessage(encodeRequest(load, names));
    if (body.length > MAX_BODY_BYTES) {
      throw new RangeError(`Cannot send body of "${body.length}" bytes: at most ${MAX_BODY_BYTES}`);
    }
    return { frame: encodeFrame(FRAME_TYPES.DATA, body, { flags: FLAGS.END_STREAM }), body };
  }
}

function greatestDivisor(first: number, second: number): number {
  return second === 0 ? first : greatestDivisor(second, first % second);
}
