import { systemClock } from "../../src/base/clock.ts";
import { type Environment, readSettings } from "../../src/settings/read_settings.ts";
import { startSinks } from "../../src/stats/sinks.ts";
import { StatsStore } from "../../src/stats/store.ts";
import { startStatsdExporter } from "../harness/statsd_exporter.ts";
import { needs } from "../harness/tools.ts";
import { eventually, until } from "../harness/until.ts";
import { warningLog } from "../harness/push_receivers.ts";

const MOGRIFIER = {
  USE_TAGGED_PUSH_STATS: "true",
  TAGGED_PUSH_STATS_MOGRIFIERS: "RULES",
  TAGGED_PUSH_STATS_MOGRIFIER_RULES_PATTERN: "^ratelimit\\.service\\.rate_limit\\.([^.]+)\\.(.+)\\.([^.]+)$",
  TAGGED_PUSH_STATS_MOGRIFIER_RULES_NAME: "rules.$3",
  TAGGED_PUSH_STATS_MOGRIFIER_RULES_TAGS: "domain:$1,rule:$2",
};
const PLAIN_NAME = "ratelimit_service_rate_limit_d_k_total_hits";
const TAGS = { EXTRA_TAGS: "env:prod" };

/** Settings, and the name of a metric by them with its labels. */
const EXPORTED: readonly (readonly [name: string, env: Environment, metric: string, rest: string])[] = [
  ["plain push over TCP", {}, PLAIN_NAME, ""],
  ["plain push over UDP", { PUSH_STATS_PROTOCOL: "udp", ...TAGS }, PLAIN_NAME, "___env_prod"],
  [
    "tagged push with a mogrifier",
    ...[{ ...MOGRIFIER, ...TAGS }, "rules_total_hits", '{domain="d",env="prod",rule="k"}'] as const,
  ],
];

for (const [name, env, metric, rest] of EXPORTED) {
  Deno.test({
    ...needs(["statsd_exporter"], `statsd_exporter shows what came by ${name}`),
    async fn() {
      await using exporter = await startStatsdExporter();
      const { settings } = readSettings({
        BACKEND_TYPE: "memory",
        STATS_FLUSH_INTERVAL: "20ms",
        PUSH_STATS_HOST: "127.0.0.1",
        PUSH_STATS_PORT: `${exporter.port}`,
        ...env,
      });
      const store = new StatsStore(100);
      const { logger } = warningLog();
      const stdout = { write: (bytes: Uint8Array) => Promise.resolve(bytes.length) };
      const sinks = startSinks(settings, store, { clock: systemClock, random: () => 0.5, logger, stdout });
      const timer = store.timer("ratelimit_server.Sample.response_time");
      store.addGauge("ratelimit.sample_gauge", () => -3.5);
      store.rule("d.k").totalHits += 5;
      await until("the first count", async () => Object.keys(await exporter.metrics(metric)).length > 0);
      store.rule("d.k").totalHits += 7;
      for (let call = 0; call < 2_003; call++) timer.record(1.5);
      await sinks.close();
      const count = /^ratelimit_server_Sample_response_time_?\w*_count/;
      await eventually([2_003, -3.5, { [`${metric}${rest}`]: 12 }], async () => {
        const page = await exporter.metrics("");
        const of = (pattern: RegExp) => Object.entries(page).find(([key]) => pattern.test(key))?.[1];
        return [of(count), of(/^ratelimit_sample_gauge/), await exporter.metrics(metric)];
      });
    },
  });
}
