import { hostPort } from "../../../base/host_port.ts";
import type net from "node:net";
import type { HostAndPort } from "../address.ts";
import type { KvRoute } from "../connector.ts";
import { bestOpinion, KvSentinelRound } from "./round.ts";
import { type KvOpinion, KvSentinelSession, type KvSentinelSessionOptions } from "./session.ts";

/** Pause between two looks at who the primary is, while there are connections to it. */
const WATCH_INTERVAL_MS = 500;
const MAX_SENTINELS = 16;

/** A server that was the primary when it was found. */
interface Followed {
  readonly target: string;
  readonly epoch: number | undefined;
}

/** Finds the primary by asking sentinels, and lets go of connections to a server that no longer is it. */
export class KvSentinels {
  readonly #options: KvSentinelSessionOptions;
  /** Those that are known, by `host:port`: those of the settings, and those that they told of. */
  #sessions = new Map<string, KvSentinelSession>();
  readonly #followed = new Map<net.Socket, Followed>();
  #asking: Promise<KvOpinion> | undefined;
  #cancelWatch: (() => void) | undefined;
  /** Those who wait for an answer. */
  readonly #waiting = new Set<AbortSignal>();
  readonly #endIfIdle = () => {
    if (!this.#isIdle()) return;
    this.#cancelWatch?.();
    this.#cancelWatch = undefined;
    for (const session of this.#sessions.values()) session.end();
  };

  constructor(options: KvSentinelSessionOptions) {
    this.#options = options;
    this.#know(options.address.sentinels);
  }

  /** Where the primary is now. Everyone who asks at the same time shares one round. */
  async locate(signal: AbortSignal): Promise<KvRoute> {
    const { primary, epoch } = await this.#primary(signal);
    // By the time that the stream is made more may be known, which does not hold for it.
    const followed = { target: hostPort(primary), epoch };
    return { target: primary, onStream: (stream) => this.#follow(stream, followed) };
  }

  async #primary(signal: AbortSignal): Promise<KvOpinion> {
    this.#waiting.add(signal);
    signal.addEventListener("abort", this.#endIfIdle, { once: true });
    try {
      this.#asking ??= this.#askAll().finally(() => this.#asking = undefined);
      return await this.#asking;
    } finally {
      signal.removeEventListener("abort", this.#endIfIdle);
      this.#waiting.delete(signal);
      this.#endIfIdle();
    }
  }

  /** Destroys the stream when its target is not the primary any more. */
  #follow(stream: net.Socket, followed: Followed): void {
    this.#followed.set(stream, followed);
    stream.once("close", () => {
      this.#followed.delete(stream);
      this.#endIfIdle();
    });
    this.#watch();
  }

  #watch(): void {
    this.#cancelWatch ??= this.#options.clock.after(WATCH_INTERVAL_MS, () => {
      this.#cancelWatch = undefined;
      void this.#look();
    });
  }

  /** Never rejects: what is connected goes on as it is while no sentinel answers. */
  async #look(): Promise<void> {
    await this.#primary(new AbortController().signal).catch(() => undefined);
    if (this.#followed.size > 0) this.#watch();
  }

  #isIdle(): boolean {
    return this.#followed.size === 0 && [...this.#waiting].every((signal) => signal.aborted);
  }

  /** Answers what to go by now, and lets go of what does not fit it. */
  async #askAll(): Promise<KvOpinion> {
    const round = new KvSentinelRound([...this.#sessions.values()], this.#options.clock);
    await round.soon;
    let best = bestOpinion(round.opinions);
    if (best !== undefined && this.#isDoubtful(best, round.opinions)) {
      await round.whole;
      best = bestOpinion(round.opinions);
    }
    if (best === undefined) throw new Error(`no sentinel knows the primary: ${round.failures.join("; ")}`);
    this.#know([...this.#options.address.sentinels, best.sentinel, ...best.others]);
    this.#drop(best, round.opinions);
    return best;
  }

  /** A server would be left that no failover speaks against: before that everyone is heard. */
  #isDoubtful(best: KvOpinion, opinions: readonly KvOpinion[]): boolean {
    return [...this.#followed.values()].some((one) => !isOver(one, best) && !isNamed(one, opinions));
  }

  #drop(best: KvOpinion, opinions: readonly KvOpinion[]): void {
    const primary = hostPort(best.primary);
    for (const [stream, followed] of this.#followed) {
      if (followed.target === primary) {
        this.#followed.set(stream, { target: primary, epoch: best.epoch });
      } else if (isOver(followed, best) || !isNamed(followed, opinions)) {
        stream.destroy(new Error(`the primary is ${primary} now`));
      }
    }
  }

  /** Keeps these sentinels, and no others. */
  #know(sentinels: readonly HostAndPort[]): void {
    const known = this.#sessions;
    this.#sessions = new Map();
    for (const sentinel of sentinels) {
      const text = hostPort(sentinel);
      if (this.#sessions.size >= MAX_SENTINELS || this.#sessions.has(text)) continue;
      this.#sessions.set(text, known.get(text) ?? new KvSentinelSession(sentinel, this.#options));
    }
    for (const [text, session] of known) {
      if (!this.#sessions.has(text)) session.end();
    }
  }
}

/** Whether there was a failover since, as far as is told; who tells knows better than who does not. */
function isOver({ epoch }: Followed, best: KvOpinion): boolean {
  return epoch === undefined || (best.epoch ?? -1) > epoch;
}

/** Somebody calls it the primary: it may be the same server, written in another way. */
function isNamed({ target }: Followed, opinions: readonly KvOpinion[]): boolean {
  return opinions.some(({ primary }) => hostPort(primary) === target);
}
