import { seededRandom } from "./seeded_random.ts";
import type { KillPoint } from "./webhook_faults.ts";
import type { WebhookProcess } from "./webhook_process.ts";

/** How a process is to end: at a named place, or from outside after so long. */
export type KillRound =
  | { readonly at: KillPoint; readonly nth: number }
  | { readonly at: "outside"; readonly afterMs: number };

/** What kills are drawn from. */
export interface KillRoundsOptions {
  readonly kills: number;
  readonly seed: number;
  /** Each comes at least once where there are as many kills. */
  readonly points: readonly KillPoint[];
  /** How many pieces of work there are; each place is passed about once for each of them. */
  readonly works: number;
  readonly say: (line: string) => void;
}

/** What the kills themselves were. */
export interface KillReport {
  /** How often at each place. */
  readonly killsAt: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
  readonly tookMs: number;
}

const OUTSIDE_MS = [50, 800] as const;
/** A place that is not passed in this time is a fault of the loop. */
const POINT_MS = 20_000;
const LANES = 16;

/** Draws the kills: every place in turn, and one from outside after each turn and here and there. */
export function killRounds(
  { kills, seed, points, works }: Omit<KillRoundsOptions, "say">,
): KillRound[] {
  const random = seededRandom(seed);
  // Half of what a round has, so that the place is passed so often whatever comes in between.
  const maxNth = Math.max(1, Math.floor(works / (kills + 1) / 2));
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
 * Does so many pieces of work, some in each round, while one process after the other is killed; the one that runs at
 * the beginning is ended first, and one that nobody kills runs at the end.
 */
export async function runKillRounds(
  weir: WebhookProcess,
  { rounds, works, work, say }: {
    readonly rounds: readonly KillRound[];
    readonly works: number;
    readonly work: (n: number) => Promise<void>;
    readonly say: (line: string) => void;
  },
): Promise<KillReport> {
  const begin = performance.now();
  const killsAt: Record<string, number> = {};
  const problems: string[] = [];
  const share = works / (rounds.length + 1);
  const gate = new Gate();
  const lanes = Promise.all(Array.from({ length: LANES }, () => inTurn(works, gate, work)));
  // What fails is told of at the end.
  lanes.catch(() => {});
  await weir.stop();
  for (const [index, round] of rounds.entries()) {
    await weir.start(round.at === "outside" ? {} : { faults: { kill: round } });
    gate.open(Math.ceil(share * (index + 1)));
    const problem = await ended(weir, round);
    if (problem === undefined) killsAt[round.at] = (killsAt[round.at] ?? 0) + 1;
    else problems.push(`round ${index + 1}: ${problem}`);
    say(`kill ${index + 1} of ${rounds.length}: ${round.at}, ${Math.round(performance.now() - begin)} ms`);
  }
  await weir.start();
  gate.open(works);
  await lanes;
  return { killsAt, problems, tookMs: performance.now() - begin };
}

async function ended(weir: WebhookProcess, round: KillRound): Promise<string | undefined> {
  if (round.at === "outside") {
    await new Promise((resolve) => setTimeout(resolve, round.afterMs));
    await weir.kill();
    return undefined;
  }
  const timer = setTimeout(() => weir.weir.signal("SIGTERM"), POINT_MS);
  const signal = await weir.ended();
  clearTimeout(timer);
  return signal === "SIGKILL" ? undefined : `it did not come to "${round.at}" ${round.nth} times`;
}

/** Lets numbers through up to a bound that rises. */
class Gate {
  next = 0;
  #bound = 0;
  #risen = Promise.withResolvers<void>();

  open(bound: number): void {
    this.#bound = bound;
    this.#risen.resolve();
    this.#risen = Promise.withResolvers<void>();
  }

  async take(): Promise<number> {
    while (this.next >= this.#bound) await this.#risen.promise;
    return this.next++;
  }
}

async function inTurn(works: number, gate: Gate, work: (n: number) => Promise<void>): Promise<void> {
  while (gate.next < works) {
    const n = await gate.take();
    if (n < works) await work(n);
  }
}
