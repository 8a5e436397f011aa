import type { PageClock } from "./clock.ts";
import { EventStreamReader } from "./event_stream.ts";
import type { Session } from "./session.ts";
import { readSnapshot, type Snapshot } from "./snapshot.ts";

/** How it stands with the stream. */
export type LiveState =
  | { readonly kind: "connecting" | "live" | "hidden" | "stopped" | "refused" }
  /** Tried again at this time, for this reason. */
  | { readonly kind: "reconnecting"; readonly at: number; readonly why: string };

/** What the stream is read with. */
export interface LiveStreamOptions {
  readonly session: Session;
  readonly fetch: typeof fetch;
  readonly clock: PageClock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  readonly onState: (state: LiveState) => void;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** A stream that tells nothing for so long is taken for a broken one. */
const SILENCE_MS = 8_000;

/** Reads `/ui/live`, and connects again, later and later, when it ends. */
export class LiveStream {
  readonly #options: LiveStreamOptions;
  #isHidden = false;
  #isStopped = false;
  #isRefused = false;
  /** What the stream was opened with. */
  #token: string | undefined;
  #failures = 0;
  #round: AbortController | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: LiveStreamOptions) {
    this.#options = options;
  }

  /** Begins, or begins anew: after a token was given, or because someone does not want to wait. */
  start(): void {
    this.#isStopped = false;
    this.#failures = 0;
    this.#go();
  }

  /** Ends it until it is started. */
  stop(): void {
    this.#isStopped = true;
    this.#rest({ kind: "stopped" });
  }

  /** Rests while nobody looks. */
  setHidden(isHidden: boolean): void {
    if (isHidden === this.#isHidden) return;
    this.#isHidden = isHidden;
    // One that was refused waits for a token, and so does the form that asks for it.
    if (!this.#isStopped && !this.#isRefused) this.#go();
  }

  /** Tokens were given or forgotten: a stream lives no longer than the token that opened it. */
  followSession(): void {
    const { session } = this.#options;
    if (this.#isRefused) {
      if (session.tokenFor("live") !== undefined) this.start();
    } else if (this.#round !== undefined && this.#token !== undefined && !session.holds(this.#token)) {
      this.start();
    }
  }

  #go(): void {
    if (this.#isHidden) return this.#rest({ kind: "hidden" });
    this.#rest({ kind: "connecting" });
    const round = this.#round = new AbortController();
    this.#read(round).catch((error: unknown) => {
      if (!round.signal.aborted) this.#again(error instanceof LiveEnd ? error.message : "no connection");
    });
  }

  #rest(state: LiveState): void {
    this.#round?.abort();
    this.#round = undefined;
    this.#isRefused = state.kind === "refused";
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#options.onState(state);
  }

  #again(why: string): void {
    const { clock, random } = this.#options;
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures++);
    const ms = Math.round(pause * (0.75 + random() / 2));
    this.#rest({ kind: "reconnecting", at: clock.now() + ms, why });
    this.#cancelTimer = clock.after(ms, () => this.#go());
  }

  async #read(round: AbortController): Promise<void> {
    const { session, fetch } = this.#options;
    const token = this.#token = session.tokenFor("live");
    const { signal } = round;
    const headers = new Headers(token === undefined ? {} : { authorization: `Bearer ${token}` });
    this.#watch(round);
    const response = await fetch("/ui/live", { headers, signal, cache: "no-store", redirect: "error" });
    if (signal.aborted) return;
    if (response.status === 401) {
      this.#rest({ kind: "refused" });
      session.refuse("live", token);
      // Another one was given while this one was on its way.
      if (this.#isRefused && session.tokenFor("live") !== undefined) this.start();
      return;
    }
    if (response.status === 503) throw new LiveEnd("the service has no place for another page");
    if (!response.ok || response.body === null) throw new LiveEnd(`the service answered ${response.status}`);
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
      if (done) throw new LiveEnd("the service ended the stream");
      this.#watch(round);
      for (const { name, text } of events.read(decoder.decode(value, { stream: true }))) {
        if (name !== "snapshot") continue;
        this.#failures = 0;
        if (isFirst) this.#options.onState({ kind: "live" });
        isFirst = false;
        this.#options.onSnapshot(snapshotOf(text));
      }
    }
  }

  /** Ends a round in which nothing comes. */
  #watch(round: AbortController): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#options.clock.after(SILENCE_MS, () => {
      if (this.#round === round) this.#again("the service fell silent");
    });
  }
}

function snapshotOf(text: string): Snapshot {
  try {
    return readSnapshot(text);
  } catch {
    throw new LiveEnd("what the service told could not be read");
  }
}

/** An end of the stream for a reason that can be told. */
class LiveEnd extends Error {}
