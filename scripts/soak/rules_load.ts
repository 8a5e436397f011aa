/**
 * Loads 100,000 rules, and then a file that is rejected, while calls are made, and prints the longest call and the
 * resident memory of each phase: `deno run -A scripts/soak/rules_load.ts`. Exit code 1 when calls failed, or memory
 * was not given back.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startWeir } from "../../tests/harness/weir_process.ts";
import { residentMb } from "../bench/process_figures.ts";
import { RULES } from "../bench/rate_limit_message.ts";
import { runOutage } from "./outage.ts";
import { outageTable } from "./verdict.ts";

const COUNT = 100_000;
const RATE = 1_000;
const SECONDS = { warmUp: 5, before: 5, away: 40, back: 2 } as const;
/** Heap that the rules take once they are loaded and garbage is collected. */
const RULES_MB = 97;
const MOST_MB = 1.5 * RULES_MB;

/** A rule file of this domain; the last rule has this unit. */
function manyRules(domain: string, unit: string): string {
  const rule = (index: number) =>
    `  - key: account\n    value: customer_${index.toString().padStart(6, "0")}\n` +
    `    rate_limit: { unit: ${index === COUNT - 1 ? unit : "minute"}, requests_per_unit: ${
      index % 1_000 + 1
    } }\n`;
  return `domain: ${domain}\ndescriptors:\n${
    Array.from({ length: COUNT }, (_, index) => rule(index)).join("")
  }`;
}

async function soakRules(): Promise<boolean> {
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "memory", LOG_LEVEL: "info", DISABLE_STATS: "true" },
  });
  const port = Number(weir.grpcAddress.split(":").at(-1));
  const path = join(weir.rulesFolder, "many.yaml");
  const run = (text: string) =>
    runOutage({
      weir: { pid: weir.pid, port },
      takeAway: () => Deno.writeTextFile(path, text),
      bringBack: () => {},
      rate: RATE,
      seconds: SECONDS,
    });
  const beforeMb = await residentMb(weir.pid);
  const facts = {
    loaded: await run(manyRules("many", "minute")),
    rejected: await run(manyRules("many", "none")),
  };
  // The collector gives back what it has when nothing more is allocated for a while.
  let grownMb = Infinity;
  for (let waits = 0; waits < 60 && grownMb > MOST_MB; waits++) {
    await sleep(1_000);
    grownMb = await residentMb(weir.pid) - beforeMb;
    if (waits % 10 === 0) {
      console.log(`${waits} s after the last call: ${grownMb.toFixed(0)} MB more than before`);
    }
  }
  console.log(outageTable(facts));
  console.log(`resident memory grew by ${grownMb.toFixed(0)} MB; at most ${MOST_MB} expected`);
  const faults = Object.values(facts).flatMap((one) => Object.keys(one.faults));
  for (const fault of faults) console.log(`not good: ${fault}`);
  return faults.length === 0 && grownMb <= MOST_MB;
}

if (import.meta.main) Deno.exit(await soakRules() ? 0 : 1);
