/**
 * Measures quotas with real Envoys, about two minutes: `deno run -A scripts/bench/quota_envoys.ts`. Writes
 * `results/quota_envoys.json`, from which `scripts/docs.ts` draws a picture and a part of `docs/quotas.md`.
 */
import { filterLatencies, type FilterLatency } from "./envoy_filters.ts";
import { type Machine, machine } from "./machine.ts";
import { type QuotaWaits, quotaWaits, type SharesRun, sharesRun } from "./quota_shares.ts";

const RESULTS = new URL("./results/quota_envoys.json", import.meta.url);

/** The results of a run. */
export interface QuotaEnvoysResults {
  readonly machine: Machine;
  readonly latencies: readonly FilterLatency[];
  readonly waits: QuotaWaits;
  readonly run: SharesRun;
}

/** Reads the results of the last run. */
export async function quotaEnvoysResults(): Promise<QuotaEnvoysResults> {
  return JSON.parse(await Deno.readTextFile(RESULTS));
}

if (import.meta.main) {
  const results: QuotaEnvoysResults = {
    machine: machine(),
    latencies: await filterLatencies(),
    waits: await quotaWaits(),
    run: await sharesRun(),
  };
  await Deno.writeTextFile(RESULTS, `${JSON.stringify(results)}\n`);
  Deno.exit(0);
}
