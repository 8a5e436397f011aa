import { type Ask, HitBatch, type HitGroup } from "../hit_batch.ts";
import type { McExchange } from "./connection.ts";
import { mcKeyOctets } from "./keys.ts";
import type { McTally } from "./tally.ts";

/** Longest expiry that the protocol takes as a duration; beyond it a number is a time of the clock. */
const LONGEST_DURATION_SECONDS = 30 * 24 * 60 * 60;
/** Last moment that the protocol can name. A counter that is to live longer stays until it is crowded out. */
const LAST_MOMENT_SECONDS = 2 ** 31 - 1;
/** Beyond this a counter gets back what was added to it: at 2^64 it would start again at 0. */
const HIGHEST_COUNT = 2 ** 62;

/** What has to follow a batch. */
export interface Overshoot {
  readonly key: string;
  readonly excess: string;
}

/** What a batch is made with. */
export interface McBatchOptions {
  /** Wall clock time in milliseconds since the epoch. */
  readonly now: () => number;
  readonly tally: McTally;
  /** Told of a counter that came so high that something is to be taken off it. */
  readonly onOvershoot: (overshoot: Overshoot) => void;
}

/**
 * Hits that go to one node in one write. To count, a counter is made at 0 unless it is there, and then
 * raised: one round trip, one count for each group, and nothing that any server of this kind cannot do.
 */
export class McBatch implements McExchange {
  readonly #options: McBatchOptions;
  readonly #overshoots: Overshoot[] = [];
  #hits = new HitBatch();

  constructor(options: McBatchOptions) {
    this.#options = options;
  }

  /** Whether there is nothing to send. */
  get empty(): boolean {
    return this.#hits.empty && this.#overshoots.length === 0;
  }

  /** Takes the hits of a caller. */
  add(ask: Ask): void {
    this.#hits.add(ask);
  }

  /** Takes what is to be taken off a counter, for which nobody waits. */
  addOvershoot(overshoot: Overshoot): void {
    this.#overshoots.push(overshoot);
  }

  /** Leaves out the hits of those who do not wait any more. */
  dropGone(): void {
    this.#hits = this.#hits.withoutGone();
  }

  commands(): { text: string; replies: number } {
    const nowSeconds = Math.floor(this.#options.now() / 1_000);
    let text = "";
    let replies = 0;
    for (const { key, excess } of this.#overshoots) {
      text += `decr ${mcKeyOctets(key)} ${excess}\r\n`;
      replies++;
    }
    for (const { key, total, expiresInSeconds } of this.#hits.groups) {
      const octets = mcKeyOctets(key);
      replies += total > 0 ? 2 : 1;
      if (total > 0) {
        text += `add ${octets} 0 ${expiry(expiresInSeconds, nowSeconds)} 1\r\n0\r\n`;
        text += `incr ${octets} ${deltaOf(total)}\r\n`;
      } else text += total === 0 ? `get ${octets}\r\n` : `decr ${octets} ${-total}\r\n`;
    }
    return { text, replies };
  }

  answered(replies: readonly string[]): string | undefined {
    const misfit = this.#eachGroup(replies, misfitOf).find((text) => text !== undefined);
    if (misfit === undefined) {
      this.#eachGroup(replies, (group, made, reply) => {
        group.outcome = this.#outcome(group, made, reply);
      });
      this.#hits.settle();
    } else this.failed(misfit);
    return misfit;
  }

  failed(reason: string): void {
    for (const { total } of this.#hits.groups) {
      if (total === 0) this.#options.tally.readError++;
      else this.#options.tally.incrementError++;
    }
    this.#hits.fail(reason);
  }

  /** Runs over the groups, each with the reply to making its counter, if it had one, and to the step. */
  #eachGroup<T>(
    replies: readonly string[],
    run: (group: HitGroup, made: string | undefined, reply: string) => T,
  ): T[] {
    let at = this.#overshoots.length;
    return this.#hits.groups.map((group) => {
      const made = group.total > 0 ? replies[at++] : undefined;
      return run(group, made, replies[at++] ?? "");
    });
  }

  #outcome(group: HitGroup, made: string | undefined, reply: string): number | string {
    if (group.total === 0) return this.#read(reply);
    if (made !== undefined) this.#countMade(made);
    const { tally, onOvershoot } = this.#options;
    if (reply === "NOT_FOUND") {
      tally.incrementMiss++;
      // Nothing was counted: there was no room for it, or it was crowded out at once.
      return group.total < 0 ? 0 : isError(made ?? "") ? `${made}` : "the node does not keep the counter";
    }
    if (isError(reply)) {
      tally.incrementError++;
      return reply;
    }
    tally.incrementSuccess++;
    const count = Number(reply);
    if (group.total < 0) return count;
    const delta = deltaOf(group.total);
    if (count > HIGHEST_COUNT) onOvershoot({ key: group.key, excess: delta });
    // As if all of it had been added, so that no caller of the group sees less than was there.
    return count + (group.total - Number(delta));
  }

  #read(reply: string): number | string {
    const { tally } = this.#options;
    tally.keysRequested++;
    if (isError(reply)) {
      tally.readError++;
      return reply;
    }
    tally.readSuccess++;
    if (reply === "END") return 0;
    tally.keysFound++;
    // A counter that has gone down keeps its length with spaces.
    const value = reply.slice("VALUE ".length).trimEnd();
    return /^\d{1,20}$/.test(value)
      ? Number(value)
      : `the counter is ${JSON.stringify(value)}, which is not a whole number`;
  }

  #countMade(made: string): void {
    const { tally } = this.#options;
    if (made === "STORED") tally.addSuccess++;
    else if (made === "NOT_STORED") tally.addNotStored++;
    else tally.addError++;
  }
}

/** Counters to be forgotten, in one write. */
export class McRemoval implements McExchange {
  readonly #keys: readonly string[];
  readonly #done = Promise.withResolvers<void>();

  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  /** Settles when they are forgotten; throws what went wrong. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  commands(): { text: string; replies: number } {
    const text = this.#keys.map((key) => `delete ${mcKeyOctets(key)}\r\n`).join("");
    return { text, replies: this.#keys.length };
  }

  answered(replies: readonly string[]): string | undefined {
    const error = replies.find((reply) => reply !== "DELETED" && reply !== "NOT_FOUND");
    if (error === undefined) this.#done.resolve();
    else this.failed(error);
    return error === undefined || isError(error) ? undefined : `it answers ${JSON.stringify(error)}`;
  }

  failed(reason: string): void {
    this.#done.reject(new Error(reason));
  }
}

/** What no honest answer to these commands can be: the answers are out of step, and counts would be wrong. */
function misfitOf({ total }: HitGroup, made: string | undefined, reply: string): string | undefined {
  // A refusal of the line itself leaves the value behind it standing as a command of its own.
  const fits = made === undefined || made === "STORED" || made === "NOT_STORED" ||
    made.startsWith("SERVER_ERROR");
  if (!fits) return `it answers ${JSON.stringify(made)}`;
  const isFound = total === 0 ? reply === "END" || reply.startsWith("VALUE ") : /^\d|^NOT_FOUND$/.test(reply);
  return isFound || isError(reply) ? undefined : `it answers ${JSON.stringify(reply)}`;
}

function isError(reply: string): boolean {
  return /^(?:CLIENT_|SERVER_)?ERROR/.test(reply);
}

/** At most what is exact as a number; a counter with that much is over every limit. */
function deltaOf(total: number): string {
  return String(Math.min(total, Number.MAX_SAFE_INTEGER));
}

/** What `add` is told: a duration, a time of the clock, or 0 for never. */
function expiry(expiresInSeconds: number, nowSeconds: number): number {
  // One more, because a server counts whole seconds: 1 may be over in no time.
  const seconds = Math.max(1, Math.ceil(expiresInSeconds)) + 1;
  if (seconds <= LONGEST_DURATION_SECONDS) return seconds;
  const moment = nowSeconds + seconds;
  return moment <= LAST_MOMENT_SECONDS ? moment : 0;
}
