import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { residentMb } from "../harness/process_metrics.ts";
import { RULES } from "../harness/bench_rules.ts";
import { runOutage } from "../harness/outage_load.ts";
import { outageTable } from "../harness/outage_verdict.ts";
import { until } from "../harness/until.ts";
import { startWeir } from "../harness/weir_process.ts";
import { bySize } from "./soak_options.ts";

const COUNT = bySize({ short: 5_000, full: 100_000 });
const RATE = bySize({ short: 200, full: 1_000 });
const SECONDS = { warmUp: 2, before: 1, away: 1, back: 2 } as const;
/** Heap that 100,000 rules take once they are loaded and garbage is collected. */
const RULES_MB = 97 * COUNT / 100_000;
/**
 * Resident memory that may stay. About twice what the rules need was measured, because the heap keeps pages that it once
 * used; a second set of rules that is kept exceeds two and a half times. The rest is for calls and code.
 */
const MOST_MB = 2.5 * RULES_MB + 40;
/** Rules are read in a thread of low priority, which a busy machine lets wait. */
const LOAD_MS = 900_000;
const SETTLE_S = 120;

Deno.test("rules: calls go on while many rules are loaded and then rejected, and memory is given back", async () => {
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "memory", LOG_LEVEL: "info", DISABLE_STATS: "true" },
  });
  const port = Number(weir.grpcAddress.split(":").at(-1));
  const path = join(weir.rulesFolder, "many.yaml");
  const logged = (text: string) => weir.stderrLines.filter((line) => line.includes(text)).length;
  const load = (unit: string, text: string) =>
    runOutage({
      weir: { pid: weir.pid, port },
      async takeAway() {
        const before = logged(text);
        await Deno.writeTextFile(path, manyRules(unit));
        await until(`"${text}"`, () => logged(text) > before, { deadlineMs: LOAD_MS, intervalMs: 100 });
      },
      bringBack: () => {},
      rate: RATE,
      seconds: SECONDS,
    });
  const beforeMb = await residentMb(weir.pid);
  const facts = {
    loaded: await load("minute", "Rules loaded"),
    rejected: await load("none", "Rules rejected"),
  };
  console.log(outageTable(facts));
  assertEquals(Object.values(facts).map(({ faults }) => faults), [{}, {}]);
  // The collector gives memory back when nothing was allocated for a while.
  let grownMb = Infinity;
  for (let waits = 0; waits < SETTLE_S && grownMb > MOST_MB; waits++) {
    await sleep(1_000);
    grownMb = await residentMb(weir.pid) - beforeMb;
  }
  assert(grownMb <= MOST_MB, `resident memory grew by ${grownMb.toFixed(0)} MB, more than ${MOST_MB}`);
  assertEquals(await weir.stop(), 0);
});

/** Rules of a separate domain; the last one has this unit. */
function manyRules(unit: string): string {
  const rule = (index: number) =>
    `  - key: account\n    value: customer_${index.toString().padStart(6, "0")}\n` +
    `    rate_limit: { unit: ${index === COUNT - 1 ? unit : "minute"}, requests_per_unit: ${
      index % 1_000 + 1
    } }\n`;
  return `domain: many\ndescriptors:\n${Array.from({ length: COUNT }, (_, index) => rule(index)).join("")}`;
}
