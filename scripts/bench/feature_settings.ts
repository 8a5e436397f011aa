import { freePort } from "../../tests/harness/free_port.ts";
import { startPushReceiver, startSpanReceiver } from "./stats_receivers.ts";

const TOKEN = "the-token-of-the-administration-of-the-bench";
const WORKFLOW = `workflow: bench\nsteps:\n  - name: result\n    set: { id: "{{ input.id }}" }\n`;
const LOCAL_CACHE_BYTES = 1_000_000;

/** Settings with every feature on, and the addresses that they open. */
interface FeatureSettings {
  readonly settings: Readonly<Record<string, string>>;
  readonly metricsUrl: string;
  readonly debugToken: string;
}

/**
 * Settings that put every feature on that the embedded cache and rules in files leave room for; who takes what Weir
 * sends runs in this process. The folder is for files, and exists.
 */
export async function featureSettings(
  folder: string,
  owned: AsyncDisposableStack,
): Promise<FeatureSettings> {
  await Deno.mkdir(`${folder}/workflows`, { recursive: true });
  await Deno.writeTextFile(`${folder}/workflows/bench.yaml`, WORKFLOW);
  const metricsPort = freePort();
  const settings = {
    BACKEND_TYPE: "memory",
    LOCAL_CACHE_SIZE_IN_BYTES: `${LOCAL_CACHE_BYTES}`,
    ADMIN_TOKEN: TOKEN,
    DEBUG_TOKEN: TOKEN,
    WEBHOOK_STORE: `${folder}/data/weir.db`,
    WORKFLOW_DIRECTORY: `${folder}/workflows`,
    DISABLE_STATS: "false",
    USE_PUSH_STATS: "true",
    STATS_FLUSH_INTERVAL: "1s",
    PUSH_STATS_HOST: "127.0.0.1",
    PUSH_STATS_PORT: `${startPushReceiver(owned)}`,
    USE_PULL_METRICS: "true",
    PULL_METRICS_ADDR: `127.0.0.1:${metricsPort}`,
    PULL_METRICS_NATIVE: "true",
    TRACING_ENABLED: "true",
    TRACING_SAMPLING_RATE: "0.01",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await startSpanReceiver(owned)}`,
  };
  return { settings, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`, debugToken: TOKEN };
}
