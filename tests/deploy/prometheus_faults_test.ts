import { SERVE_FLAGS } from "../../scripts/serve_flags.ts";
import { type Certificates, makeCertificates } from "../harness/certificates.ts";
import { freePort } from "../harness/free_port.ts";
import { decide, GrpcClient } from "../harness/grpc_client.ts";
import { serverOfRun, usePostgres } from "../harness/postgres_fixture.ts";
import { type Prometheus, startPrometheus } from "../harness/prometheus.ts";
import { QuotaStreamClient } from "../harness/quota_stream_client.ts";
import { type RedisServer, startRedis } from "../harness/redis_server.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import type { SharedPostgresServer } from "../harness/postgres_server.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { api, WebhookFolder } from "../harness/webhook_weir.ts";
import { startWeir, type WeirProcess } from "../harness/weir_process.ts";
import { assertEquals } from "#assert";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parse } from "yaml";

/** A descriptor that is within its limit, and one that is over it. */
const OPEN = "open=a";
const OVER = "over=a";
const RULES = {
  "shop.yaml": `domain: shop
descriptors:
  - { key: open, rate_limit: { unit: day, requests_per_unit: 1000000 } }
  - { key: over, rate_limit: { unit: day, requests_per_unit: 1 } }
`,
};
const LOAD_INTERVAL_MS = 50;
/** Above the 50 ms of the alert. */
const PAUSE_MS = 150;
const MAX_BACKLOG = 5;
/** The name of the certificates of authorities. */
const AUTHORITIES = "receivers";
/** Long enough for an endpoint to be failing for some seconds. */
const DISABLE_AFTER = "10s";
const STORE_MAX_BYTES = 2_000_000;
/** A module that throws an error outside of every handler. */
const THROWS = "data:application/javascript," + encodeURIComponent(
  'Deno.addSignalListener("SIGUSR2", () => { throw new Error("injected by a test"); });',
);
const CLOCK_AHEAD_MS = 7_200_000;

/** A fault, and the alerts that it raises. */
interface AlertFault {
  readonly alerts: readonly string[];
  inject(bed: AlertBed): Promise<unknown> | void;
}

/** In stages, because some faults hide others; those of a stage come one after the other, without a wait. */
const FAULT_STAGES: readonly (readonly AlertFault[])[] = [
  [
    { alerts: ["WeirManyOverLimit", "WeirSlowCache"], inject: (bed) => bed.slowDown() },
    { alerts: ["WeirConfigurationRejected"], inject: (bed) => bed.breakRules() },
    { alerts: ["WeirQuotaRefusals"], inject: (bed) => bed.refuseQuotas() },
    { alerts: ["WeirUnexpectedErrors"], inject: (bed) => bed.process.signal("SIGUSR2") },
    { alerts: ["WeirEndpointFailing", "WeirEndpointDisabled"], inject: (bed) => bed.failEndpoint() },
    { alerts: ["WeirDeliveryBacklog"], inject: (bed) => bed.hangReceiver() },
    { alerts: ["WeirDeliveriesFailed"], inject: (bed) => bed.deleteEndpoint() },
    { alerts: ["WeirBacklogNearlyFull", "WeirBoundRefusals"], inject: (bed) => bed.fillBacklog() },
    { alerts: ["WeirStoreNearlyFull"], inject: (bed) => bed.fillStore() },
    { alerts: ["WeirTriggerErrors"], inject: (bed) => bed.removeWorkflow() },
    // It has been off since its start.
    { alerts: ["WeirClockSkew"], inject: () => {} },
    { alerts: ["WeirDegraded"], inject: () => {} },
    { alerts: ["WeirCertificateExpires"], inject: (bed) => bed.endCertificate() },
  ],
  [
    {
      alerts: ["WeirErrors", "WeirCacheFailures", "WeirBreakerOpen", "WeirQuotaExchangeErrors"],
      inject: (bed) => bed.redis.pause(),
    },
    { alerts: ["WeirStoreErrors", "WeirWebhookWorkerDown", "WeirFailing"], inject: (bed) => bed.lockStore() },
  ],
  [
    { alerts: ["WeirNoCacheConnection"], inject: (bed) => bed.redis.kill() },
    { alerts: ["WeirInstanceDown"], inject: (bed) => bed.process.kill() },
  ],
];

const FILE = new URL("../../config/deploy/helm/files/prometheus-alerts.yaml", import.meta.url);
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

/** Instances of Weir to which each fault happens, with a load of calls. */
class AlertBed implements AsyncDisposable {
  /** `host:port` of the metrics of each instance. */
  readonly targets: readonly string[];
  readonly redis: RedisServer;
  /** One in a process that SIGUSR2 makes throw. */
  readonly process: WeirProcess;
  readonly #parts: BedParts;
  readonly #stack: AsyncDisposableStack;
  readonly #client: GrpcClient;

  private constructor(parts: BedParts, stack: AsyncDisposableStack) {
    this.targets = parts.targets;
    this.redis = parts.redis;
    this.process = parts.process;
    this.#parts = parts;
    this.#stack = stack;
    this.#client = stack.use(new GrpcClient(parts.decisions.grpcAddress));
    this.#repeat(() => this.#decide(OPEN));
  }

  /** Starts the instances, one of which has a database of this server. */
  static async start(postgres: SharedPostgresServer): Promise<AlertBed> {
    await using stack = new AsyncDisposableStack();
    const targets = Array.from({ length: 4 }, () => `127.0.0.1:${freePort()}`);
    const metrics = (index: number) => ({
      DISABLE_STATS: "false",
      USE_PULL_METRICS: "true",
      PULL_METRICS_ADDR: targets[index] ?? "",
    });
    const redis = stack.use(await startRedis());
    const folder = stack.use(await WebhookFolder.make());
    const certificates = stack.use(await makeCertificates());
    const kv = { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: "1s" };
    const decisions = stack.use(await ServeFixture.start({ env: { ...kv, ...metrics(0) }, rules: RULES }));
    const webhooks = stack.use(
      await folder.serve({
        ...metrics(1),
        WEBHOOK_MAX_IN_FLIGHT: "1",
        WEBHOOK_MAX_BACKLOG: String(MAX_BACKLOG),
        WEBHOOK_STORE_MAX_BYTES: String(STORE_MAX_BYTES),
        WEBHOOK_DISABLE_AFTER: DISABLE_AFTER,
        WEBHOOK_CA_FILE: (await certificates.issue(AUTHORITIES)).certFile,
      }),
    );
    const process = stack.use(
      await startWeir({ env: metrics(2), flags: [...SERVE_FLAGS, `--preload=${THROWS}`] }),
    );
    const store = postgres.url(await postgres.createDatabase());
    stack.use(
      await startWeir({
        faults: { wallAheadMs: CLOCK_AHEAD_MS },
        env: {
          ...folder.env,
          ...metrics(3),
          WEBHOOK_STORE: store,
          WEBHOOK_ENCRYPTION_KEY: new Uint8Array(32).toBase64(),
        },
      }),
    );
    const parts = { targets, redis, process, decisions, webhooks, folder, certificates };
    return new AlertBed(parts, stack.move());
  }

  /** The hits are over their limit, and the cache answers late. */
  slowDown(): void {
    this.#repeat(async () => {
      await this.redis.command("CLIENT", "PAUSE", PAUSE_MS).catch(() => {});
      await this.#decide(OVER);
    });
  }

  /** Reloads an invalid rule file. */
  async breakRules(): Promise<void> {
    await Deno.writeTextFile(join(this.#parts.decisions.rulesFolder, "broken.yaml"), "domain: [");
    this.#parts.decisions.reload();
  }

  /** A stream of quotas reports without a domain; another one goes on, without hits. */
  refuseQuotas(): void {
    const open = () =>
      this.#stack.adopt(new QuotaStreamClient(this.#client), (stream) => void stream.cancel());
    open().report("");
    const reporting = open();
    this.#repeat(() => Promise.resolve(reporting.report("shop", { bucket: { open: "a" } })));
  }

  /** Connections to an endpoint are refused until it is disabled. One delivery leaves room in its backlog. */
  async failEndpoint(): Promise<void> {
    const id = await this.#endpoint({ url: "http://127.0.0.1:9/", events: ["refused"] });
    await this.#event("refused");
    const { items: [delivery] } = await this.#call(`/deliveries?endpointId=${id}`, {}, [200]);
    await until("a disabled endpoint", async () => {
      await this.#call(`/deliveries/${delivery?.id}/resend`, { method: "POST" }, [202]);
      return !(await this.#call(`/endpoints/${id}`, {}, [200])).enabled;
    }, { intervalMs: 100 });
  }

  /** A receiver answers no request, so that the next delivery is due without being sent. */
  async hangReceiver(): Promise<void> {
    const listener = this.#stack.adopt(
      Deno.listen({ hostname: "127.0.0.1", port: 0 }),
      (open) => open.close(),
    );
    await this.#endpoint({ url: `http://127.0.0.1:${listener.addr.port}/`, events: ["hang"] });
    for (let event = 0; event < 2; event++) await this.#event("hang");
  }

  /** An endpoint is deleted before its delivery is sent. */
  async deleteEndpoint(): Promise<void> {
    const id = await this.#endpoint({ url: "http://127.0.0.1:9/", events: ["failed"], enabled: false });
    await this.#event("failed");
    await this.#call(`/endpoints/${id}`, { method: "DELETE" }, [200, 204]);
  }

  /** A disabled endpoint has as many deliveries as it may have, and an event is rejected. */
  async fillBacklog(): Promise<void> {
    await this.#endpoint({ url: "http://127.0.0.1:9/", events: ["full"], enabled: false });
    for (let event = 0; event < MAX_BACKLOG; event++) await this.#event("full");
    const rejected = { body: { event: "full", data: {} } };
    await until("a rejected event", async () => (await this.#api("/events", rejected)).status === 503);
  }

  /** The store holds almost as much as it may. */
  async fillStore(): Promise<void> {
    const data = { text: "x".repeat(100_000) };
    await until("a nearly full store", async () => {
      const { ["ratelimit.webhooks.store_used_bytes"]: used = 0 } = await this.#parts.webhooks.stats();
      if (used > 0.85 * STORE_MAX_BYTES) return true;
      await this.#event("large", data);
      return false;
    }, { intervalMs: 100 });
  }

  /** The authorities of deliveries are replaced by some that expire soon. */
  async endCertificate(): Promise<void> {
    await this.#parts.certificates.issue(AUTHORITIES, { days: 13 });
  }

  /** A trigger is called whose workflow is gone. */
  async removeWorkflow(): Promise<void> {
    const { body: { key } } = await this.#api("/triggers", { body: { name: "gone", workflow: "echo" } });
    await Deno.remove(join(this.#parts.folder.path, "workflows", "echo.yaml"));
    const call = async () => {
      const { status } = await this.#api("/workflows/triggers/gone", { token: key, body: {} });
      return status >= 500;
    };
    await until("a trigger that fails", call);
    this.#repeat(call);
  }

  /** Another program holds the lock of the store. */
  lockStore(): void {
    // The instance may be writing.
    const opened = new DatabaseSync(this.#parts.folder.store, { timeout: 5_000 });
    const database = this.#stack.adopt(opened, (open) => open.close());
    database.exec("BEGIN IMMEDIATE");
    this.#repeat(() => this.#api("/events", { body: { event: "locked", data: {} } }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  /** The answer is no part of the tests: with some faults there is none. */
  async #decide(descriptor: string): Promise<void> {
    await decide(this.#client, "shop", descriptor).catch(() => {});
  }

  /** Calls until the end. */
  #repeat(call: () => Promise<unknown>): void {
    let isOver = false;
    const run = async () => {
      while (!isOver) {
        await call();
        await new Promise((resolve) => setTimeout(resolve, LOAD_INTERVAL_MS));
      }
    };
    const running = run();
    this.#stack.defer(async () => {
      isOver = true;
      await running;
    });
  }

  async #endpoint(body: Readonly<Record<string, unknown>>): Promise<string> {
    return (await this.#call("/endpoints", { body }, [201])).id;
  }

  async #event(event: string, data: unknown = {}): Promise<void> {
    await this.#call("/events", { body: { event, data } }, [202]);
  }

  async #call(path: string, call: Parameters<typeof api>[2], expected: readonly number[]) {
    const { status, body } = await this.#api(path, call);
    if (!expected.includes(status)) throw new Error(`Cannot call "${path}": ${status}`);
    return body;
  }

  #api(path: string, call: Parameters<typeof api>[2]) {
    return api(this.#parts.webhooks.httpAddress, path, call);
  }
}

interface BedParts {
  readonly targets: readonly string[];
  readonly redis: RedisServer;
  readonly process: WeirProcess;
  readonly decisions: ServeFixture;
  readonly webhooks: ServeFixture;
  readonly folder: WebhookFolder;
  readonly certificates: Certificates;
}

/** The alert rules with seconds in place of minutes, and without the longer waits. */
function quickAlerts(text: string): string {
  return text
    .replaceAll(/^( +for): .*$/gm, "$1: 1s")
    .replaceAll(/\[(\d+)m\]/g, "[$1s]")
    .replaceAll(/offset (\d+)m/g, "offset $1s")
    .replace("oldest_due_age_seconds > 300", "oldest_due_age_seconds > 3");
}
