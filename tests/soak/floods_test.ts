import { assertEquals } from "@std/assert";
import { RULES } from "../harness/bench_rules.ts";
import { startWeir } from "../harness/weir_process.ts";
import { FloodRun } from "./flood_run.ts";
import { bySize, SOAK_SEED } from "./soak_options.ts";

const FLOODS = bySize({ short: 4, full: 100 });
/** How long a flood lasts at most, and how long calls are measured without one. */
const SECONDS = bySize({ short: 1, full: 3 });
const WARM_UP_SECONDS = bySize({ short: 1, full: 3 });
/** The p99 of calls during a flood may be this many times that without, plus what a busy machine may add. */
const MAX_RATIO = 3;
const SLACK_MS = 50;
/** A flood counts as noticed when it is noticed each time: other programs take the processor away too. */
const ATTEMPTS = 3;

Deno.test("floods: a connection that floods is closed, or calls on another connection stay fast", async () => {
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "memory", LOG_LEVEL: "warning", DISABLE_STATS: "true" },
  });
  const run = new FloodRun(Number(weir.grpcAddress.split(":").at(-1)));
  const noticed: string[] = [];
  await run.quiet(WARM_UP_SECONDS);
  for (let count = 0; count < FLOODS; count++) {
    const text = await noticedFlood(run, SOAK_SEED + count);
    if (text !== undefined) noticed.push(text);
  }
  assertEquals({ lost: await run.end(), noticed }, { lost: [], noticed: [] });
  assertEquals(await weir.stop(), 0);
});

/** Says how calls on another connection suffered from a flood; undefined when they did not, or it was closed. */
async function noticedFlood(run: FloodRun, seed: number): Promise<string | undefined> {
  let text = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { kinds, wasClosed, frames, p99Ms } = await run.flood(seed, SECONDS);
    if (wasClosed) return undefined;
    const quietMs = await run.quiet(SECONDS);
    if (p99Ms <= MAX_RATIO * quietMs + SLACK_MS) return undefined;
    text = `${kinds.join(", ")}: not closed after ${frames} frames, ` +
      `p99 ${p99Ms.toFixed(1)} ms, ${quietMs.toFixed(1)} ms after it`;
  }
  return text;
}
