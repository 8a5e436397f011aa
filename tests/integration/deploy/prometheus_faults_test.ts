import { assertEquals } from "@std/assert";
import { parse } from "yaml";
import { AlertBed, FAULT_STAGES, quickAlerts } from "../../harness/alert_faults.ts";
import { serverOfRun, usePostgres } from "../../harness/postgres_fixture.ts";
import { type Prometheus, startPrometheus } from "../../harness/prometheus.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const FILE = new URL("../../../config/deploy/prometheus-alerts.yaml", import.meta.url);
/** `WeirDeliveriesFailed` looks back so far. */
const BASELINE = 'ratelimit_webhooks_deliveries{state="failed"} offset 15s';
const DEADLINE_MS = 120_000;
usePostgres();

Deno.test("alert faults: each alert has a fault, and the copy of the rules has no minutes", async () => {
  const text = await Deno.readTextFile(FILE);
  const { groups } = parse(text);
  const alerts: string[] = groups.flatMap(({ rules }: { rules: { alert: string }[] }) =>
    rules.map(({ alert }) => alert)
  );
  assertEquals(FAULT_STAGES.flat().flatMap((fault) => fault.alerts).sort(), alerts.sort());
  assertEquals(/\d+m\b|> 300/.exec(quickAlerts(text))?.[0], undefined);
});

Deno.test({
  ...needs(
    ["prometheus", "redis-server", "postgres", "openssl"],
    "alert faults: Prometheus raises each alert after its fault",
  ),
  async fn(test) {
    await using bed = await AlertBed.start(serverOfRun());
    const rules = quickAlerts(await Deno.readTextFile(FILE));
    await using prometheus = await startPrometheus({ target: bed.targets, rules });
    await until("the baseline", async () => {
      const [up, before] = await Promise.all(
        ['up{job="weir"} == 1', BASELINE].map((query) => prometheus.query(query)),
      );
      return up?.length === bed.targets.length && (before?.length ?? 0) > 0;
    }, { deadlineMs: DEADLINE_MS, intervalMs: 100 });
    await test.step("without a fault, only the clock is reported, and that it degrades the instance", async () => {
      await until(
        "no other alert",
        async () => (await firing(prometheus)).join() === "WeirClockSkew,WeirDegraded",
        {
          intervalMs: 100,
        },
      );
    });
    for (const stage of FAULT_STAGES) {
      const begin = performance.now();
      for (const fault of stage) await fault.inject(bed);
      for (const alert of stage.flatMap((fault) => fault.alerts)) {
        await test.step(alert, async () => {
          await until(alert, () => wasFiring(prometheus, alert, performance.now() - begin), {
            deadlineMs: DEADLINE_MS,
            intervalMs: 100,
          });
        });
      }
    }
  },
});

async function firing(prometheus: Prometheus): Promise<string[]> {
  const samples = await prometheus.query('group by (alertname) (ALERTS{alertstate="firing"})');
  return samples.map(({ metric }) => metric["alertname"] ?? "").sort();
}

/** Also one that has ended since: some faults are over after a moment. */
async function wasFiring(prometheus: Prometheus, alert: string, withinMs: number): Promise<boolean> {
  const within = `${Math.max(1, Math.floor(withinMs / 1_000))}s`;
  const query = `count_over_time(ALERTS{alertname="${alert}",alertstate="firing"}[${within}])`;
  return (await prometheus.query(query)).length > 0;
}
