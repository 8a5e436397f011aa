import { readUint32 } from "./frames.ts";
import { MAX_WINDOW, type Sender } from "./sender.ts";

/** Tells our own PING from others: its answer says that the first GOAWAY has been read. */
const PING_MARK = 0x77656972;

/**
 * How a connection is given up without losing a call, in two steps: a first GOAWAY that names no last
 * stream, with a PING behind it; and when that is answered, a second one with the last stream that is
 * answered. What the peer sent before it read the first has arrived by then.
 */
export class Drain {
  readonly #sender: Sender;
  #state: "no" | "announced" | "final" = "no";
  #lastStreamId = MAX_WINDOW;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  /** The peer has been asked to go. */
  get begun(): boolean {
    return this.#state !== "no";
  }

  /** No further stream is taken. */
  get final(): boolean {
    return this.#state === "final";
  }

  /** Asks the peer to go. */
  announce(): void {
    this.#state = "announced";
    this.#sender.goAway(MAX_WINDOW, "NO_ERROR", "");
    this.#sender.ping(PING_MARK);
  }

  /** Whether the answer to a PING says that the first GOAWAY has been read. */
  isAnnounceRead(payload: Uint8Array): boolean {
    return this.#state === "announced" && readUint32(payload, 0) === PING_MARK;
  }

  /** Names the last stream that is answered. */
  finish(lastStreamId: number): void {
    this.#state = "final";
    this.#lastStreamId = lastStreamId;
    this.#sender.goAway(lastStreamId, "NO_ERROR", "");
  }

  /** Whether all that was to be answered is answered, when these streams are open. */
  isOver(streamIds: Iterable<number>): boolean {
    if (this.#state !== "final") return false;
    for (const id of streamIds) if (id <= this.#lastStreamId) return false;
    return true;
  }
}
