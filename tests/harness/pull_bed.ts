import { systemClock } from "../../src/base/clock.ts";
import type { Logger } from "../../src/base/log.ts";
import { type HttpPort, listenHttp } from "../../src/http/server/http_port.ts";
import { createPullHandler, type PullHandlerOptions } from "../../src/stats/pull_handler.ts";
import type { MetricMapping } from "../../src/stats/pull_mapping.ts";
import { serverCalls, StatsStore } from "../../src/stats/store.ts";
import { listenOptions } from "./http_fixture.ts";
import { rulesOf } from "./service_fixture.ts";

/** Rules with one level, with two and with dots in a value. */
export const SHOP_RULES = rulesOf({
  "shop.yaml": `domain: shop
descriptors:
  - { key: account, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - key: host
    value_to_metric: true
    descriptors: [{ key: path, rate_limit: { unit: hour, unit_multiplier: 2, requests_per_unit: 7 } }]
`,
});

/** A mapping of response times with few bounds. */
export const TOOK: MetricMapping = {
  pattern: /^ratelimit_server\.(.*)\.response_time$/,
  kind: "histogram",
  drop: false,
  name: "took_$1",
  labels: { method: "$1" },
  help: undefined,
  scale: 1,
  bounds: [0.00025, 1],
};

/** Metrics on a separate port. */
export class PullBed implements AsyncDisposable {
  readonly store: StatsStore;
  /** `host:port` of the metrics. */
  readonly address: string;
  readonly log: readonly string[];
  readonly #listener: HttpPort;

  constructor(options: Partial<PullHandlerOptions> = {}) {
    const log: string[] = [];
    const write = (message: string) => void log.push(message);
    const logger: Logger = { debug: write, info: write, warning: write, error: write };
    this.store = new StatsStore(1_000_000);
    this.log = log;
    const handler = createPullHandler({
      store: this.store,
      path: "/metrics",
      native: false,
      timeAsMilliseconds: false,
      extraTags: new Map(),
      rules: () => SHOP_RULES,
      logger,
      clock: systemClock,
      ...options,
    });
    this.#listener = listenHttp(handler, listenOptions({ logger, clock: systemClock }));
    this.address = `127.0.0.1:${this.#listener.port}`;
  }

  /** Counts some of everything, so that each kind of metric is there. */
  work(): void {
    Array.from(this.store.loadedRules(new Map([["shop.account", "shop"]])));
    const counted = { totalHits: 9, withinLimit: 5, overLimit: 4, nearLimit: 1 };
    Object.assign(this.store.rule("shop.account"), counted);
    Object.assign(this.store.rule("shop.host_a.example.path"), { totalHits: 2, withinLimit: 2 });
    this.store.service.kvError = 3;
    this.store.service.configLoadSuccess = 1;
    this.store.addGauge("ratelimit.kv_pool.cx_active", () => 10);
    const calls = serverCalls(this.store)("ShouldRateLimit");
    for (let call = 0; call < 11; call++) calls.started();
    for (const ms of [0.04, 0.2, 0.3, 20_000]) calls.ended(ms);
  }

  /** A request to the port. */
  async fetch(path = "/metrics", init: RequestInit = {}): Promise<Response> {
    return await fetch(`http://${this.address}${path}`, init);
  }

  /** The lines of the metrics whose names begin like this. */
  async lines(start: string, init: RequestInit = {}): Promise<string[]> {
    const text = await (await this.fetch("/metrics", init)).text();
    return text.split("\n").filter((line) => line.replace(/^# (?:HELP|TYPE) /, "").startsWith(start));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listener.close(0);
  }
}
