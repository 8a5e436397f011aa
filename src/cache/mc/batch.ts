import type { Caller, Counter, CountReceiver, Hit } from "../../ratelimit/decision/counter_cache.ts";
import { type Ask, HitBatch, type HitGroup, NodeCounter } from "../hit_batch.ts";
import { mcKeyBytes } from "./keys.ts";
import type { McTally } from "./tally.ts";

/** Longest expiry that the protocol takes as a duration; a larger number is a Unix time. */
const LONGEST_DURATION_SECONDS = 30 * 24 * 60 * 60;
/** Last time of the protocol. A counter that lives longer stays until it is evicted. */
const LAST_MOMENT_SECONDS = 2 ** 31 - 1;
/** A sum beyond this is taken off again: at 2^64 a counter would start again at 0. */
const HIGHEST_COUNT = 2 ** 62;

/** The metric of each reply to `add`. */
const MADE: Partial<Record<string, keyof McTally>> = { STORED: "add.success", NOT_STORED: "add.not_stored" };

/** Commands that are sent in one write. */
export interface McExchange {
  /** The commands, one character a byte, and how many replies they bring. */
  commands(): { readonly text: string; readonly replies: number };
  /** Takes all replies, in order; returns what is wrong when they do not fit the commands. */
  answered(replies: readonly string[]): string | undefined;
  /** There will be no replies. */
  fail(reason: string): void;
}

/** Takes hits of a counter, on the node that has it. */
export type McTake = (
  counter: McCounter,
  hits: number,
  caller: Caller | undefined,
  receiver: CountReceiver,
) => void;

/** A counter, under the key that the protocol can carry. */
export class McCounter extends NodeCounter implements Counter {
  readonly #take: McTake;

  constructor(hit: Hit, storedKey: string, take: McTake) {
    super({ key: storedKey, windowEnd: hit.windowEnd, expiresInSeconds: hit.expiresInSeconds });
    this.#take = take;
  }

  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void {
    this.#take(this, hits, caller, receiver);
  }
}

/** A subtraction from a counter that came too high. */
interface Overshoot {
  readonly key: string;
  readonly excess: string;
}

/** Options of a batch. */
interface McBatchOptions {
  /** Wall clock time in milliseconds since the epoch. */
  readonly now: () => number;
  readonly tally: McTally;
  readonly onOvershoot: (overshoot: Overshoot) => void;
}

/** Hits that go to one node in one write. Each counter is made at 0 unless it exists, and then raised. */
export class McBatch extends HitBatch<McCounter> implements McExchange {
  /** Number of takes that were added, also by callers that are gone. */
  takes = 0;
  readonly #options: McBatchOptions;
  readonly #overshoots: Overshoot[] = [];

  constructor(options: McBatchOptions) {
    super();
    this.#options = options;
  }

  override get isEmpty(): boolean {
    return super.isEmpty && this.#overshoots.length === 0;
  }

  override add(ask: Ask<McCounter>): void {
    super.add(ask);
    this.takes++;
  }

  addOvershoot(overshoot: Overshoot): void {
    this.#overshoots.push(overshoot);
  }

  commands(): { text: string; replies: number } {
    const nowSeconds = Math.floor(this.#options.now() / 1_000);
    let text = "";
    let replies = 0;
    for (const { key, excess } of this.#overshoots) {
      text += `decr ${mcKeyBytes(key)} ${excess}\r\n`;
      replies++;
    }
    for (const { counter, total, expiresInSeconds } of this.groups) {
      const bytes = mcKeyBytes(counter.key);
      replies += total > 0 ? 2 : 1;
      if (total > 0) {
        text += `add ${bytes} 0 ${expiry(expiresInSeconds, nowSeconds)} 1\r\n0\r\n`;
        text += `incr ${bytes} ${deltaOf(total)}\r\n`;
      } else text += total === 0 ? `get ${bytes}\r\n` : `decr ${bytes} ${-total}\r\n`;
    }
    return { text, replies };
  }

  answered(replies: readonly string[]): string | undefined {
    const misfit = this.#eachGroup(replies, misfitOf).find((text) => text !== undefined);
    if (misfit !== undefined) {
      this.fail(misfit);
      return misfit;
    }
    this.#eachGroup(replies, (group, ...parts) => group.outcome = this.#outcome(group, ...parts));
    this.settle();
    return undefined;
  }

  override fail(reason: string): void {
    for (const { total } of this.groups) {
      this.#options.tally[total === 0 ? "multiget.error" : "increment.error"]++;
    }
    super.fail(reason);
  }

  /** Maps the groups, each with the reply to `add`, if it had one, and to its step. */
  #eachGroup<T>(
    replies: readonly string[],
    run: (group: HitGroup, made: string | undefined, reply: string) => T,
  ): T[] {
    let at = this.#overshoots.length;
    return this.groups.map((group) => {
      const made = group.total > 0 ? replies[at++] : undefined;
      return run(group, made, replies[at++] ?? "");
    });
  }

  #outcome(group: HitGroup, made: string | undefined, reply: string): number | string {
    if (group.total === 0) return this.#read(reply);
    if (made !== undefined) this.#options.tally[MADE[made] ?? "add.error"]++;
    const { tally, onOvershoot } = this.#options;
    if (reply === "NOT_FOUND") {
      tally["increment.miss"]++;
      // Nothing was counted: there was no room for it, or it was evicted immediately.
      return group.total < 0 ? 0 : isError(made ?? "") ? `${made}` : "the node does not keep the counter";
    }
    if (isError(reply)) {
      tally["increment.error"]++;
      return reply;
    }
    tally["increment.success"]++;
    const count = Number(reply);
    if (group.total < 0) return count;
    const delta = deltaOf(group.total);
    if (count > HIGHEST_COUNT) onOvershoot({ key: group.counter.key, excess: delta });
    return count - Number(delta);
  }

  #read(reply: string): number | string {
    const { tally } = this.#options;
    tally.keys_requested++;
    if (isError(reply)) {
      tally["multiget.error"]++;
      return reply;
    }
    tally["multiget.success"]++;
    if (reply === "END") return 0;
    tally.keys_found++;
    // A counter that went down is padded with spaces.
    const value = reply.slice("VALUE ".length).trimEnd();
    return /^\d{1,20}$/.test(value)
      ? Number(value)
      : `the counter is ${JSON.stringify(value)}, which is not a whole number`;
  }
}

/** The removal of counters, in one write. */
export class McRemoval implements McExchange {
  readonly #keys: readonly string[];
  readonly #done = Promise.withResolvers<void>();
  /** Settles when they are removed; rejects with what went wrong. */
  readonly done = this.#done.promise;

  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  commands(): { text: string; replies: number } {
    const text = this.#keys.map((key) => `delete ${mcKeyBytes(key)}\r\n`).join("");
    return { text, replies: this.#keys.length };
  }

  answered(replies: readonly string[]): string | undefined {
    const error = replies.find((reply) => reply !== "DELETED" && reply !== "NOT_FOUND");
    if (error === undefined) this.#done.resolve();
    else this.fail(error);
    return error === undefined || isError(error) ? undefined : `it answers ${JSON.stringify(error)}`;
  }

  fail(reason: string): void {
    this.#done.reject(new Error(reason));
  }
}

/** True if the replies cannot be the answer to these commands: they are out of step, and counts would be wrong. */
function misfitOf({ total }: HitGroup, made: string | undefined, reply: string): string | undefined {
  // A refused line leaves the value behind it as a separate command.
  const isMade = made === undefined || Object.hasOwn(MADE, made) || made.startsWith("SERVER_ERROR");
  if (!isMade) return `it answers ${JSON.stringify(made)}`;
  const isFound = total === 0 ? reply === "END" || reply.startsWith("VALUE ") : /^\d|^NOT_FOUND$/.test(reply);
  return isFound || isError(reply) ? undefined : `it answers ${JSON.stringify(reply)}`;
}

function isError(reply: string): boolean {
  return /^(?:CLIENT_|SERVER_)?ERROR/.test(reply);
}

/** At most what is exact as a number, which is over every limit. */
function deltaOf(total: number): string {
  return String(Math.min(total, Number.MAX_SAFE_INTEGER));
}

/** The expiry of `add`: a duration, a Unix time, or 0 for never. */
function expiry(expiresInSeconds: number, nowSeconds: number): number {
  // One more, because a server counts whole seconds: 1 may be over immediately.
  const seconds = Math.max(1, Math.ceil(expiresInSeconds)) + 1;
  if (seconds <= LONGEST_DURATION_SECONDS) return seconds;
  const moment = nowSeconds + seconds;
  return moment <= LAST_MOMENT_SECONDS ? moment : 0;
}
