import { framed } from "../grpc/native/message_reader.ts";
import { encodeFrame, FLAG, FRAME } from "../grpc/native/frames.ts";

/** The longest body of a call: it fits into one frame, and into the window of every usual server. */
export const MAX_BODY_BYTES = 1_024;
/** Calls that are encoded once and kept; more variants than these are encoded each time. */
const MAX_KEPT = 20_000;

/** The data of one call, after its HEADERS frame. */
export interface LoadCall {
  /** The DATA frame, without the stream's number. */
  readonly frame: Uint8Array;
  /** Its payload. */
  readonly body: Uint8Array;
  /** The message in it. */
  readonly message: Uint8Array;
}

/** Options of `CallSource`. */
export interface CallSourceOptions {
  /** Number of different calls. */
  readonly variants: number;
  /** The message of a variant, from 0. */
  readonly message: (variant: number) => Uint8Array;
  /** Chooses the variants, with numbers from 0 to below 1; they take turns when absent. */
  readonly random?: (() => number) | undefined;
}

/** Makes the calls of a run. Throws a `RangeError` for a message that is too long. */
export class CallSource {
  readonly #options: CallSourceOptions;
  readonly #kept: LoadCall[] = [];
  #taken = 0;

  constructor(options: CallSourceOptions) {
    this.#options = options;
    const { variants } = options;
    // The last one is the longest where the number of the variant is part of the message.
    if (variants > MAX_KEPT) this.#make(variants - 1);
    else for (let variant = 0; variant < variants; variant++) this.#kept.push(this.#make(variant));
  }

  /** Calls that were taken. */
  get taken(): number {
    return this.#taken;
  }

  /** The next call. */
  next(): LoadCall {
    const { variants, random } = this.#options;
    const variant = random === undefined ? this.#taken % variants : Math.floor(random() * variants);
    this.#taken++;
    return this.#kept[variant] ?? this.#make(variant);
  }

  #make(variant: number): LoadCall {
    const message = this.#options.message(variant);
    const body = framed(message);
    if (body.length > MAX_BODY_BYTES) {
      throw new RangeError(`Cannot send body of "${body.length}" bytes: at most ${MAX_BODY_BYTES}`);
    }
    return { frame: encodeFrame(FRAME.DATA, body, { flags: FLAG.END_STREAM }), body, message };
  }
}
