import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import { hostPort } from "../../../base/host_port.ts";
import type { KvOpinion, KvSentinelSession } from "./session.ts";

/** So long the others have after the first one has answered. */
const GRACE_MS = 1_000;

/** One question to all sentinels at the same time. */
export class KvSentinelRound {
  /** Settles when enough have answered: all but those that are known to be late, or that turn out to be. */
  readonly soon: Promise<void>;
  /** Settles when each one has answered or failed. */
  readonly whole: Promise<void>;
  readonly #opinions: (KvOpinion | undefined)[] = [];
  readonly #failures: (string | undefined)[] = [];
  readonly #unsettled: Set<KvSentinelSession>;
  readonly #awaited: Set<KvSentinelSession>;
  readonly #enough = Promise.withResolvers<void>();
  readonly #clock: Clock;
  #cancelGrace: (() => void) | undefined;

  constructor(sessions: readonly KvSentinelSession[], clock: Clock) {
    this.#clock = clock;
    this.#unsettled = new Set(sessions);
    const prompt = sessions.filter(({ late }) => !late);
    this.#awaited = new Set(prompt.length > 0 ? prompt : sessions);
    this.whole = Promise.all(sessions.map((session, position) => this.#ask(session, position)))
      .then(() => this.#enough.resolve());
    this.soon = this.#enough.promise.then(() => {
      this.#cancelGrace?.();
      for (const session of this.#unsettled) session.late = true;
    });
  }

  /** What was said until now, in the order of the sentinels. */
  get opinions(): KvOpinion[] {
    return this.#opinions.filter((opinion) => opinion !== undefined);
  }

  /** Why others said nothing, in the same order. */
  get failures(): string[] {
    return this.#failures.filter((failure) => failure !== undefined);
  }

  async #ask(session: KvSentinelSession, position: number): Promise<void> {
    try {
      this.#opinions[position] = await session.ask();
    } catch (error) {
      const text = errorText(error);
      this.#failures[position] = `${hostPort(session.sentinel)}: ${text}`;
    }
    this.#unsettled.delete(session);
    this.#awaited.delete(session);
    if (this.opinions.length === 0) return;
    if (this.#awaited.size === 0) this.#enough.resolve();
    else this.#cancelGrace ??= this.#clock.after(GRACE_MS, this.#enough.resolve);
  }
}

/**
 * The opinion to go by: that of the most failovers, since a sentinel may have missed some, and among those
 * the one that most have. One that does not tell comes behind all that do. Absent when there is none.
 */
export function bestOpinion(opinions: readonly KvOpinion[]): KvOpinion | undefined {
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
