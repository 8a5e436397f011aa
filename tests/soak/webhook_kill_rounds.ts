import { seededRandom } from "../harness/seeded_random.ts";
import type { KillPoint } from "../harness/webhook_faults.ts";
import type { WebhookProcess, WebhookStart } from "../harness/webhook_process.ts";

/** Processes that are killed, whatever they have in common. */
export interface KilledProcesses {
  readonly members: readonly WebhookProcess[];
  startMember(n: number, start?: WebhookStart): Promise<void>;
}

type KillRound =
  | { readonly at: KillPoint; readonly nth: number }
  | { readonly at: "outside"; readonly afterMs: number };

/** Options of a kill rounds. */
interface KillRoundsOptions {
  readonly kills: number;
  readonly seed: number;
  /** Each comes at least once where there are as many kills. */
  readonly points: readonly KillPoint[];
  /** Number of works; each place is passed about once for each of them. */
  readonly works: number;
  /** Does one of them. */
  readonly work: (n: number) => Promise<void>;
}

/** The kills of all rounds. */
export interface KillReport {
  /** Kills at each place. */
  readonly killsAt: Readonly<Record<string, number>>;
  /** Number of works that were done: all, and some more where a process took long to come to its place. */
  readonly works: number;
  readonly problems: readonly string[];
}

const OUTSIDE_MS = [50, 800] as const;
/** A place that is not passed in this time is a fault of the loop. */
const POINT_MS = 180_000;
const LANES = 16;
/** Time without a kill after which there may be too little work: some more is done. */
const STALL_MS = 1_000;

/** Draws the kills: every place in turn, and one from outside after each turn and here and there. */
function killRounds({ kills, seed, points, works }: KillRoundsOptions, processes: number): KillRound[] {
  const random = seededRandom(seed);
  // Half of what a round has, so that the place is passed so often whatever comes in between.
  const maxNth = Math.max(1, Math.floor(works / (kills + 1) / 2 / processes));
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const rounds: KillRound[] = [];
  while (rounds.length < kills) {
    const shuffled = points.map((at) => ({ at, order: random() })).sort((a, b) => a.order - b.order);
    // One look claims many: that place is passed more seldom than the others.
    for (const { at } of shuffled) rounds.push({ at, nth: between(1, at === "before claim" ? 3 : maxNth) });
    for (let count = 0; count < points.length / 2; count++) {
      rounds.push({ at: "outside", afterMs: between(...OUTSIDE_MS) });
    }
  }
  return rounds.slice(0, kills);
}

/**
 * Does so many pieces of work, some in each round, while one process after the other is killed, or of several each on
 * its own; those that run at the beginning are ended first, and those without a kill run at the end.
 */
export async function runKillRounds(
  weir: KilledProcesses,
  options: KillRoundsOptions,
): Promise<KillReport> {
  const { works, work } = options;
  const left = killRounds(options, weir.members.length);
  const killsAt: Record<string, number> = {};
  const problems: string[] = [];
  const share = works / (options.kills + 1);
  const gate = new Gate();
  const lanes = Promise.all(Array.from({ length: LANES }, () => inTurn(gate, work)));
  // Failures are reported at the end.
  lanes.catch(() => {});
  await Promise.all(weir.members.map((member) => member.stop()));
  let count = 0;
  const killInTurn = async (n: number) => {
    for (let round = left.shift(); round !== undefined; round = left.shift()) {
      // A kill from outside may come before the webhook service has its store.
      await weir.startMember(n, round.at === "outside" ? { isAwaited: false } : { faults: { kill: round } });
      gate.open(Math.ceil(share * (count + 1)));
      const problem = await ended(weir.members[n], round);
      count++;
      if (problem === undefined) killsAt[round.at] = (killsAt[round.at] ?? 0) + 1;
      else problems.push(`kill ${count}: ${problem}`);
    }
    await weir.startMember(n);
  };
  const stalls = setInterval(() => gate.openAfterStall(Math.ceil(share / 4)), STALL_MS);
  try {
    await Promise.all(weir.members.map((_, n) => killInTurn(n)));
  } finally {
    clearInterval(stalls);
    gate.end(works);
  }
  await lanes;
  return { killsAt, problems, works: gate.bound };
}

async function ended(member: WebhookProcess | undefined, round: KillRound): Promise<string | undefined> {
  if (member === undefined) throw new Error("Cannot kill a process: there is none");
  if (round.at === "outside") {
    await new Promise((resolve) => setTimeout(resolve, round.afterMs));
    await member.kill();
    return undefined;
  }
  const timer = setTimeout(() => member.weir.signal("SIGTERM"), POINT_MS);
  const signal = await member.ended();
  clearTimeout(timer);
  return signal === "SIGKILL" ? undefined : `it did not come to "${round.at}" ${round.nth} times`;
}

/** Lets numbers through up to a bound that rises. */
class Gate {
  #next = 0;
  #bound = 0;
  #isOver = false;
  #hasRisen = false;
  #changed = Promise.withResolvers<void>();

  get bound(): number {
    return this.#bound;
  }

  open(bound: number): void {
    this.#bound = Math.max(this.#bound, bound);
    this.#hasRisen = true;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Opens it for some more, unless it was opened since the last time. */
  openAfterStall(more: number): void {
    if (!this.#hasRisen && this.#bound > 0 && this.#next >= this.#bound) this.open(this.#bound + more);
    this.#hasRisen = false;
  }

  /** The bound rises no more than to this. */
  end(bound: number): void {
    this.#isOver = true;
    this.open(bound);
  }

  /** The next number; nothing once all are taken. */
  async take(): Promise<number | undefined> {
    while (this.#next >= this.#bound) {
      if (this.#isOver) return undefined;
      await this.#changed.promise;
    }
    return this.#next++;
  }
}

async function inTurn(gate: Gate, work: (n: number) => Promise<void>): Promise<void> {
  for (let n = await gate.take(); n !== undefined; n = await gate.take()) await work(n);
}
