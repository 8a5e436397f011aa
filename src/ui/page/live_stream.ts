import type { Clock } from "../../base/clock.ts";
import { EventStreamReader } from "./event_stream.ts";
import type { Session } from "./session.ts";
import { readSnapshot, type Snapshot } from "./snapshot.ts";

/** The state of the stream. */
export type LiveState =
  | { readonly kind: "connecting" | "live" | "hidden" | "stopped" | "refused" }
  | { readonly kind: "reconnecting"; readonly at: number; readonly why: string };

/** Options of a live stream. */
interface LiveStreamOptions {
  readonly session: Session;
  readonly fetch: typeof fetch;
  readonly clock: Pick<Clock, "now" | "after">;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  readonly onState: (state: LiveState) => void;
}

const MIN_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;
/** A stream without data for this long is broken. */
const IDLE_TIMEOUT_MS = 8_000;

/** Reads `/ui/live` and reconnects with a growing delay when it ends. */
export class LiveStream {
  readonly #options: LiveStreamOptions;
  #isHidden = false;
  #kind: LiveState["kind"] = "connecting";
  #token: string | undefined;
  #failures = 0;
  #round: AbortController | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: LiveStreamOptions) {
    this.#options = options;
  }

  /** Connects now: at first, after a token was given, or instead of waiting. */
  start(): void {
    this.#failures = 0;
    this.#connect();
  }

  stop(): void {
    this.#disconnect({ kind: "stopped" });
  }

  /** Disconnects while the page is hidden. */
  setHidden(isHidden: boolean): void {
    if (isHidden === this.#isHidden) return;
    this.#isHidden = isHidden;
    // A rejected stream waits for a token.
    if (this.#kind !== "stopped" && this.#kind !== "refused") this.#connect();
  }

  /** A stream ends with the token that opened it. */
  followSession(): void {
    const { session } = this.#options;
    if (this.#kind === "refused") {
      if (session.tokenFor("live") !== undefined) this.start();
    } else if (this.#round !== undefined && this.#token !== undefined && !session.holds(this.#token)) {
      this.start();
    }
  }

  #connect(): void {
    if (this.#isHidden) return this.#disconnect({ kind: "hidden" });
    this.#disconnect({ kind: "connecting" });
    const round = this.#round = new AbortController();
    this.#read(round).catch((error: unknown) => {
      if (!round.signal.aborted) {
        this.#reconnect(error instanceof StreamEnd ? error.message : "no connection");
      }
    });
  }

  #disconnect(state: LiveState): void {
    this.#round?.abort();
    this.#round = undefined;
    this.#kind = state.kind;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#options.onState(state);
  }

  #reconnect(why: string): void {
    const { clock, random } = this.#options;
    const delay = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** this.#failures++);
    const ms = Math.round(delay * (0.75 + random() / 2));
    this.#disconnect({ kind: "reconnecting", at: clock.now() + ms, why });
    this.#cancelTimer = clock.after(ms, () => this.#connect());
  }

  async #read(round: AbortController): Promise<void> {
    const { session, fetch } = this.#options;
    const token = this.#token = session.tokenFor("live");
    const { signal } = round;
    const headers = new Headers(token === undefined ? {} : { authorization: `Bearer ${token}` });
    this.#restartIdleTimer(round);
    const response = await fetch("/ui/live", { headers, signal, cache: "no-store", redirect: "error" });
    if (signal.aborted) return;
    if (response.status === 401) {
      this.#disconnect({ kind: "refused" });
      session.reject("live", token);
      // Another token was given in the meantime.
      if (this.#kind === "refused" && session.tokenFor("live") !== undefined) this.start();
      return;
    }
    if (response.status === 503) throw new StreamEnd("too many pages are open");
    if (!response.ok || response.body === null) {
      throw new StreamEnd(`the service responded with status ${response.status}`);
    }
    await this.#readEvents(response.body.getReader(), round);
  }

  async #readEvents(
    reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
    round: AbortController,
  ): Promise<void> {
    const decoder = new TextDecoder();
    const events = new EventStreamReader();
    for (let isFirst = true;;) {
      const { value, done } = await reader.read();
      if (round.signal.aborted) return;
      if (done) throw new StreamEnd("the service ended the stream");
      this.#restartIdleTimer(round);
      for (const { name, text } of events.read(decoder.decode(value, { stream: true }))) {
        if (name !== "snapshot") continue;
        this.#failures = 0;
        if (isFirst) this.#options.onState({ kind: "live" });
        isFirst = false;
        this.#options.onSnapshot(snapshotOf(text));
      }
    }
  }

  /** Reconnects when no data arrives in time. */
  #restartIdleTimer(round: AbortController): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(IDLE_TIMEOUT_MS, () => {
      if (this.#round === round) this.#reconnect("the service stopped sending");
    });
  }
}

function snapshotOf(text: string): Snapshot {
  try {
    return readSnapshot(text);
  } catch {
    throw new StreamEnd("invalid snapshot");
  }
}

/** An end of the stream with a reason for the reader. */
class StreamEnd extends Error {}
