import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import { hostPort } from "../../../base/host_port.ts";
import type { KvOpinion, KvSentinelSession } from "./session.ts";

/** How long the others have after the first answer. */
const GRACE_MS = 1_000;

/** One question to all sentinels at the same time. */
export class KvSentinelRound {
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

/**
 * The opinion with the most failovers, since a sentinel may have missed some, and among those the one of the
 * majority. Opinions without an epoch come last.
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
