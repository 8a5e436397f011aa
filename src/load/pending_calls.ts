import type { Block } from "./block_reader.ts";
import type { LoadCall } from "./call_source.ts";

/** A call in flight, and its answer so far. The object is used again for a later call. */
export interface PendingCall {
  /** 0 when it is free. */
  streamId: number;
  start: number;
  call: LoadCall | undefined;
  /** The block that began the answer. */
  first: Block | undefined;
  /** `good`, or what is wrong with the body; undefined until it is complete. */
  body: string | undefined;
  /** Bytes of an incomplete body. */
  part: Uint8Array | undefined;
}

/** Calls in flight on one connection, by stream: a ring, because stream numbers ascend. */
export class PendingCalls {
  readonly #slots: PendingCall[];
  #size = 0;

  /** Room for at least `inFlight` calls, and for others that overtake them. */
  constructor(inFlight: number) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(64, 8 * inFlight)));
    this.#slots = Array.from({ length: slots }, emptyCall);
  }

  /** Calls in flight. */
  get size(): number {
    return this.#size;
  }

  /** Whether a call on this stream can begin; false while a much older call is in its place. */
  hasRoom(streamId: number): boolean {
    return this.#slotOf(streamId).streamId === 0;
  }

  /** Begins a call. */
  begin(streamId: number, call: LoadCall, start: number): void {
    const slot = this.#slotOf(streamId);
    slot.streamId = streamId;
    slot.call = call;
    slot.start = start;
    this.#size++;
  }

  /** The call on this stream, if it is in flight. */
  get(streamId: number): PendingCall | undefined {
    const slot = this.#slotOf(streamId);
    return slot.streamId === streamId ? slot : undefined;
  }

  /** Forgets a call. */
  end(slot: PendingCall): void {
    slot.streamId = 0;
    slot.call = undefined;
    slot.first = undefined;
    slot.body = undefined;
    slot.part = undefined;
    this.#size--;
  }

  /** The streams of all calls in flight. */
  streamIds(): number[] {
    return this.#slots.filter(({ streamId }) => streamId !== 0).map(({ streamId }) => streamId);
  }

  #slotOf(streamId: number): PendingCall {
    const slot = this.#slots[(streamId >>> 1) & (this.#slots.length - 1)];
    if (slot === undefined) throw new RangeError(`Cannot find call of stream "${streamId}": no such place`);
    return slot;
  }
}

function emptyCall(): PendingCall {
  return { streamId: 0, start: 0, call: undefined, first: undefined, body: undefined, part: undefined };
}
