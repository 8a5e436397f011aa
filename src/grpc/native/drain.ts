import { readUint32 } from "./frames.ts";
import { MAX_WINDOW } from "./frame_sender.ts";
import type { ResponseSender } from "./response_sender.ts";

/** Marks our PING: its answer proves that the peer has read the first GOAWAY. */
const PING_MARK = 0x77656972;

/**
 * Closes a connection without losing a call, in two steps: a first GOAWAY that names no last stream, with a PING
 * after it; and when that is answered, a second GOAWAY that names the last stream. Whatever the peer sent before it
 * read the first one has arrived by then.
 */
export class Drain {
  readonly #sender: ResponseSender;
  #state: "no" | "announced" | "final" = "no";
  #lastStreamId = MAX_WINDOW;
  #keepsStreams = false;

  constructor(sender: ResponseSender) {
    this.#sender = sender;
  }

  /** True if the last stream is named, so that no further one is accepted. */
  get isFinal(): boolean {
    return this.#state === "final";
  }

  /** True if streaming calls go on while the connection drains. */
  get keepsStreams(): boolean {
    return this.#keepsStreams;
  }

  /** Asks the peer to go away; false when it was asked before. */
  announce(keepsStreams: boolean): boolean {
    this.#keepsStreams = keepsStreams;
    if (this.#state !== "no") return false;
    this.#state = "announced";
    this.#sender.goAway(MAX_WINDOW, "NO_ERROR", "");
    this.#sender.ping(PING_MARK);
    return true;
  }

  /** True if the answer to a PING proves that the first GOAWAY has been read. */
  isAnnounceRead(payload: Uint8Array): boolean {
    return this.#state === "announced" && readUint32(payload, 0) === PING_MARK;
  }

  /** Names the last stream that is answered. */
  finish(lastStreamId: number): void {
    this.#state = "final";
    this.#lastStreamId = lastStreamId;
    this.#sender.goAway(lastStreamId, "NO_ERROR", "");
  }

  /** True if every accepted call is answered, when these streams are open. */
  isOver(streamIds: Iterable<number>): boolean {
    if (this.#state !== "final") return false;
    for (const id of streamIds) if (id <= this.#lastStreamId) return false;
    return true;
  }
}
