import type { Duplex } from "node:stream";
import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import { type HostAndPort, hostPort } from "../../../base/host_port.ts";
import type { KvRoute } from "../greeting.ts";
import { type KvOpinion, KvSentinelSession, type KvSentinelSessionOptions } from "./session.ts";

/** Pause between two questions for the primary while there are connections to it. */
const WATCH_INTERVAL_MS = 500;
const MAX_SENTINELS = 16;
/** Time for the others after the first answer. */
const GRACE_MS = 1_000;

/** A server that was the primary when it was found. */
interface Followed {
  readonly target: string;
  readonly epoch: number | undefined;
}

/** Finds the primary by asking sentinels, and ends connections to a server that no longer is the primary. */
export class KvSentinels {
  readonly #options: KvSentinelSessionOptions;
  /** By `host:port`: those of the settings, and those that they know of. */
  #sessions = new Map<string, KvSentinelSession>();
  readonly #followed = new Map<Duplex, Followed>();
  #asking: Promise<KvOpinion> | undefined;
  #cancelWatch: (() => void) | undefined;
  readonly #waiting = new Set<AbortSignal>();
  readonly #endIfIdle = () => {
    const isIdle = this.#followed.size === 0 && [...this.#waiting].every((signal) => signal.aborted);
    if (!isIdle) return;
    this.#cancelWatch?.();
    this.#cancelWatch = undefined;
    for (const session of this.#sessions.values()) session.end();
  };

  constructor(options: KvSentinelSessionOptions) {
    this.#options = options;
    this.#know(options.address.sentinels);
  }

  /** The primary now. Questions at the same time share one round. */
  async locate(signal: AbortSignal): Promise<KvRoute> {
    const { primary, epoch } = await this.#primary(signal);
    // By the time that the stream is opened a later round may have another answer.
    const followed = { target: hostPort(primary), epoch };
    return { target: primary, onStream: (stream) => this.#follow(stream, followed) };
  }

  async #primary(signal: AbortSignal): Promise<KvOpinion> {
    this.#waiting.add(signal);
    signal.addEventListener("abort", this.#endIfIdle, { once: true });
    try {
      return await this.#ask();
    } finally {
      signal.removeEventListener("abort", this.#endIfIdle);
      this.#waiting.delete(signal);
      this.#endIfIdle();
    }
  }

  #ask(): Promise<KvOpinion> {
    return this.#asking ??= this.#askAll().finally(() => this.#asking = undefined);
  }

  /** Destroys the stream once its target is not the primary any more. */
  #follow(stream: Duplex, followed: Followed): void {
    this.#followed.set(stream, followed);
    stream.once("close", () => {
      this.#followed.delete(stream);
      this.#endIfIdle();
    });
    this.#watch();
  }

  #watch(): void {
    this.#cancelWatch ??= this.#options.clock.after(WATCH_INTERVAL_MS, async () => {
      this.#cancelWatch = undefined;
      // Connections stay while no sentinel answers; the question ends with the last of them.
      await this.#ask().catch(() => undefined);
      if (this.#followed.size > 0) this.#watch();
      else this.#endIfIdle();
    });
  }

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

  /** A server would be left without a failover: before that all answers are awaited. */
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

  /** Keeps exactly these sentinels. */
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

/** Returns true if there was a failover since, as far as is known. */
function isOver({ epoch }: Followed, best: KvOpinion): boolean {
  return epoch === undefined || (best.epoch ?? -1) > epoch;
}

/** Returns true if a sentinel names it the primary: its address may be written in two ways. */
function isNamed({ target }: Followed, opinions: readonly KvOpinion[]): boolean {
  return opinions.some(({ primary }) => hostPort(primary) === target);
}

/** One question to all sentinels at the same time. */
class KvSentinelRound {
  /** Settles when all but the late ones have answered. */
  readonly soon: Promise<void>;
  /** Settles when all have answered or failed. */
  readonly whole: Promise<void>;
  readonly #answers: (KvOpinion | string | undefined)[] = [];
  readonly #unsettled: Set<KvSentinelSession>;
  readonly #awaited: Set<KvSentinelSession>;
  readonly #enough = Promise.withResolvers<void>();
  readonly #clock: Clock;
  #cancelGrace: (() => void) | undefined;

  constructor(sessions: readonly KvSentinelSession[], clock: Clock) {
    this.#clock = clock;
    this.#unsettled = new Set(sessions);
    const prompt = sessions.filter(({ isLate }) => !isLate);
    this.#awaited = new Set(prompt.length > 0 ? prompt : sessions);
    this.whole = Promise.all(sessions.map((session, position) => this.#ask(session, position)))
      .then(() => this.#enough.resolve());
    this.soon = this.#enough.promise.then(() => {
      this.#cancelGrace?.();
      for (const session of this.#unsettled) session.isLate = true;
    });
  }

  /** The answers until now, in the order of the sentinels. */
  get opinions(): KvOpinion[] {
    return this.#answers.filter((answer) => typeof answer === "object");
  }

  /** The failures until now, in the same order. */
  get failures(): string[] {
    return this.#answers.filter((answer) => typeof answer === "string");
  }

  async #ask(session: KvSentinelSession, position: number): Promise<void> {
    this.#answers[position] = await session.ask().catch((error: unknown) => {
      return `${hostPort(session.sentinel)}: ${errorText(error)}`;
    });
    this.#unsettled.delete(session);
    this.#awaited.delete(session);
    if (this.opinions.length === 0) return;
    if (this.#awaited.size === 0) this.#enough.resolve();
    else this.#cancelGrace ??= this.#clock.after(GRACE_MS, this.#enough.resolve);
  }
}

/** The opinion with the most failovers, of those that of the majority; those without an epoch come last. */
function bestOpinion(opinions: readonly KvOpinion[]): KvOpinion | undefined {
  const isBetter = (one: KvOpinion, other: KvOpinion) => {
    const [epoch, otherEpoch] = [one.epoch ?? -1, other.epoch ?? -1];
    return epoch !== otherEpoch ? epoch > otherEpoch : votesFor(one, opinions) > votesFor(other, opinions);
  };
  return opinions.reduce<KvOpinion | undefined>(
    (best, one) => best === undefined || isBetter(one, best) ? one : best,
    undefined,
  );
}

function votesFor({ primary, epoch }: KvOpinion, opinions: readonly KvOpinion[]): number {
  const text = hostPort(primary);
  return opinions.filter((other) => other.epoch === epoch && hostPort(other.primary) === text).length;
}
