import { assert, assertEquals } from "@std/assert";
import { OtlpMetricsReceiver } from "../../harness/otlp_metrics_receiver.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import { type Env, type SettingCases, SHOP } from "./settings_case.ts";

const INTERVAL = "100";

/** Tests of the settings of metrics over OTLP. */
export const OTLP_METRICS_CASES: SettingCases = {
  OTEL_METRICS_EXPORTER: {
    sees: "metrics at a collector",
    async run() {
      assertEquals(await exportsOf({ OTEL_METRIC_EXPORT_INTERVAL: INTERVAL }), 0);
      const env = { OTEL_METRICS_EXPORTER: "otlp", OTEL_METRIC_EXPORT_INTERVAL: INTERVAL };
      assert(await exportsOf(env, 1) >= 1, "they come");
    },
  },
  OTEL_METRIC_EXPORT_INTERVAL: {
    sees: "more of them",
    async run() {
      const env = { OTEL_METRICS_EXPORTER: "otlp", OTEL_METRIC_EXPORT_INTERVAL: INTERVAL };
      assert(await exportsOf(env, 3) >= 3, "they come at the interval");
    },
  },
};

/** How many exports a process made until its end, which comes after so many. */
async function exportsOf(env: Env, awaited = 0): Promise<number> {
  await using receiver = await OtlpMetricsReceiver.start("http");
  const stats = { DISABLE_STATS: "false", USE_PULL_METRICS: "true", PULL_METRICS_ADDR: "127.0.0.1:0" };
  await using weir = await startWeir({
    env: { ...stats, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...env },
    rules: SHOP,
  });
  await until("the exports", () => receiver.exports.length >= awaited);
  assertEquals(await weir.stop(), 0);
  return receiver.exports.length;
}
