import { assert, assertEquals, assertRejects } from "#assert";
import { get, type IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import { createPullHandler } from "../../../src/stats/pull_handler.ts";
import type { MetricMapping } from "../../../src/stats/pull_mapping.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { PullBed, TOOK } from "../../harness/pull_bed.ts";

const OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT = "text/plain; version=0.0.4; charset=utf-8";

Deno.test("pull metrics: rules, errors, requests and gauges by the built-in mapping", async () => {
  await using bed = new PullBed();
  bed.work();
  assertEquals(await bed.lines("ratelimit_service_rate_limit_total_hits"), [
    "# HELP ratelimit_service_rate_limit_total_hits All hits, including those of calls that failed later.",
    "# TYPE ratelimit_service_rate_limit_total_hits counter",
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="account"} 9',
    'ratelimit_service_rate_limit_total_hits{domain="shop",key1="host_a.example",key2="path"} 2',
  ]);
  const values = [
    'ratelimit_service_rate_limit_over_limit{domain="shop",key1="account"} 4',
    'ratelimit_service_should_rate_limit_error{err_type="kv_error"} 3',
    'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 11',
    "ratelimit_service_config_load_success 1",
    "# TYPE ratelimit_kv_pool_cx_active gauge",
    "ratelimit_kv_pool_cx_active 10",
  ];
  const seen = await bed.lines("");
  assertEquals(values.filter((line) => !seen.includes(line)), []);
});

Deno.test("pull metrics: times are histograms in seconds with the bounds of the timers", async () => {
  await using bed = new PullBed();
  bed.work();
  const name = "ratelimit_service_response_time_seconds";
  const lines = (await bed.lines(name)).filter((line) => !line.startsWith("#"));
  const labels = 'grpc_method="ShouldRateLimit"';
  const bounds = ("0.00005 1,0.0001 1,0.00025 2,0.0005 3,0.001 3,0.0025 3,0.005 3,0.01 3,0.025 3," +
    "0.05 3,0.1 3,0.25 3,0.5 3,1 3,2.5 3,5 3,10 3,+Inf 4").split(",");
  assertEquals(lines, [
    ...bounds.map((text) => {
      const [bound, count] = text.split(" ");
      return `${name}_bucket{${labels},le="${bound}"} ${count}`;
    }),
    `${name}_sum{${labels}} 20.00054`,
    `${name}_count{${labels}} 4`,
  ]);
});

Deno.test("pull metrics: bounds of a mapping file", async () => {
  const everything = { ...TOOK, pattern: /./, kind: undefined, drop: true };
  await using mapped = new PullBed({ mapping: [TOOK, everything] });
  mapped.work();
  assertEquals((await mapped.lines("")).filter((line) => !/process|nodejs/.test(line)), [
    "# HELP took_ShouldRateLimit Named by the mapping file.",
    "# TYPE took_ShouldRateLimit histogram",
    'took_ShouldRateLimit_bucket{method="ShouldRateLimit",le="0.00025"} 2',
    'took_ShouldRateLimit_bucket{method="ShouldRateLimit",le="1"} 3',
    'took_ShouldRateLimit_bucket{method="ShouldRateLimit",le="+Inf"} 4',
    'took_ShouldRateLimit_sum{method="ShouldRateLimit"} 20.00054',
    'took_ShouldRateLimit_count{method="ShouldRateLimit"} 4',
    "",
  ]);
});

Deno.test("pull metrics: native labels, and the limit of each rule", async () => {
  await using bed = new PullBed({ native: true });
  bed.work();
  const rules = (await bed.lines("ratelimit_rule_")).filter((line) =>
    !/^#|stat="(?:s|over_limit_w)/.test(line)
  );
  assertEquals(rules, [
    'ratelimit_rule_hits_total{domain="shop",rule="account",stat="total_hits"} 9',
    'ratelimit_rule_hits_total{domain="shop",rule="account",stat="over_limit"} 4',
    'ratelimit_rule_hits_total{domain="shop",rule="account",stat="near_limit"} 1',
    'ratelimit_rule_hits_total{domain="shop",rule="account",stat="within_limit"} 5',
    'ratelimit_rule_hits_total{domain="shop",rule="host_a.example.path",stat="total_hits"} 2',
    'ratelimit_rule_hits_total{domain="shop",rule="host_a.example.path",stat="over_limit"} 0',
    'ratelimit_rule_hits_total{domain="shop",rule="host_a.example.path",stat="near_limit"} 0',
    'ratelimit_rule_hits_total{domain="shop",rule="host_a.example.path",stat="within_limit"} 2',
    'ratelimit_rule_limit{domain="shop",rule="account",unit="minute"} 5',
    'ratelimit_rule_limit{domain="shop",rule="host.path",unit="hour"} 7',
    'ratelimit_rule_window_seconds{domain="shop",rule="account",unit="minute"} 60',
    'ratelimit_rule_window_seconds{domain="shop",rule="host.path",unit="hour"} 7200',
  ]);
  assertEquals(await bed.lines("ratelimit_service_rate_limit_total_hits"), []);
});

Deno.test("pull metrics: levels below the second are summed, tags are on everything, and labels take precedence", async () => {
  await using bed = new PullBed({ extraTags: new Map([["zone-a", 'x"y'], ["domain", "tag"]]) });
  for (const last of ["1", "2"]) bed.store.rule(`gone.a.b.c_${last}`).totalHits += 5;
  const [, , sum] = await bed.lines("ratelimit_service_rate_limit_total_hits");
  assertEquals(
    sum,
    'ratelimit_service_rate_limit_total_hits{domain="gone",key1="a",key2="b",zone_a="x\\"y"} 10',
  );
  const [, , memory = ""] = await bed.lines("process_resident_memory_bytes");
  const [, name, bytes] = /^(.*) (\d+)$/.exec(memory) ?? [];
  assertEquals(name, 'process_resident_memory_bytes{zone_a="x\\"y",domain="tag"}');
  assert(Number(bytes) > 1_000_000);
});

Deno.test("pull metrics: a name that two kinds would have goes to the first, and that is logged once", async () => {
  await using bed = new PullBed();
  bed.store.addCounter("a.b", () => 1);
  bed.store.addGauge("a_b", () => 2);
  bed.store.timer("c").record(1);
  bed.store.addCounter("c.count", () => 3);
  for (let scrape = 0; scrape < 2; scrape++) {
    assertEquals((await bed.lines("a_b")).at(-1), "a_b 1");
    assertEquals((await bed.lines("c_count")).filter((line) => !line.startsWith("#")), ["c_count 1"]);
  }
  assertEquals(bed.log, [
    "Metric omitted: another kind of metric has its name",
    "Metric omitted: another kind of metric has its name",
  ]);
});

const REQUESTS: readonly [path: string, method: string, status: number, allow?: string][] = [
  ["/metrics", "GET", 200],
  ["/metrics?a=b", "HEAD", 200],
  ["/metrics", "POST", 405, "GET, HEAD"],
  ["/metrics/", "GET", 404],
  ["/", "GET", 404],
  ["/debug/pprof", "GET", 404],
];

Deno.test("pull metrics: one path has them, for two methods", async () => {
  await using bed = new PullBed();
  for (const [path, method, status, allow = null] of REQUESTS) {
    const response = await bed.fetch(path, { method });
    const has = (await response.text()).includes("ratelimit_");
    const seen = [path, method, response.status, response.headers.get("allow"), has];
    assertEquals(seen, [path, method, status, allow, status === 200 && method === "GET"]);
  }
});

const SCRAPER =
  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," +
  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
const ACCEPTS: Readonly<Record<string, string>> = {
  "": TEXT,
  "*/*": TEXT,
  "text/plain": TEXT,
  "application/openmetrics-text": OPENMETRICS,
  [SCRAPER]: OPENMETRICS,
  "text/plain, application/openmetrics-text; version=1.0.0; q=0.5": TEXT,
  "application/openmetrics-text; version=2.0.0": TEXT,
  "application/openmetrics-text; q=0": TEXT,
};

Deno.test("pull metrics: the scraper chooses the format", async () => {
  await using bed = new PullBed();
  for (const [accept, type] of Object.entries(ACCEPTS)) {
    const response = await bed.fetch("/metrics", { headers: { accept } });
    const isOpen = (await response.text()).endsWith("\n# EOF\n");
    assertEquals([accept, response.headers.get("content-type"), isOpen], [
      accept,
      type,
      type === OPENMETRICS,
    ]);
  }
});

/** The response to this `accept-encoding`: status of the compression, and the text, by a bare connection. */
async function rawScrape(bed: PullBed, encoding: string): Promise<[string | null, string | null, string]> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = { "accept-encoding": encoding };
  get(`http://${bed.address}/metrics`, { headers, agent: false }, resolve).on("error", reject);
  const response = await promise;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const part of response) parts.push(new Uint8Array(part));
  const coding = response.headers["content-encoding"] ?? null;
  const body = new Blob(parts).stream();
  const text = coding === "gzip" ? body.pipeThrough(new DecompressionStream("gzip")) : body;
  return [coding, response.headers.vary ?? null, await new Response(text).text()];
}

Deno.test("pull metrics: compressed where the scraper accepts gzip, and the same text", async () => {
  await using bed = new PullBed();
  for (let key = 0; key < 600; key++) {
    bed.store.rule(`shop.account_${key}_${"x".repeat(90)}`).totalHits = key;
  }
  const rules = (text: string) => text.split("\n").filter((line) => line.startsWith("ratelimit_service_"));
  const [, , plainText] = await rawScrape(bed, "identity");
  const [refused, accepted] = [["", "gzip;q=0, *"], ["gzip", "br, *;q=0.1", "deflate, GZIP;q=0.5"]] as const;
  for (const encoding of [...refused, ...accepted]) {
    const expected = accepted.some((one) => one === encoding) ? "gzip" : null;
    const [coding, vary, text] = await rawScrape(bed, encoding);
    assertEquals([coding, vary], [expected, "accept, accept-encoding"], encoding);
    assertEquals(rules(text), rules(plainText));
  }
});

Deno.test("pull metrics: every line has the same name in both formats", async () => {
  await using bed = new PullBed({ native: true });
  bed.work();
  const [text, open] = await Promise.all(
    ["text/plain", "application/openmetrics-text"].map(async (accept) => {
      const lines = await bed.lines("", { headers: { accept } });
      return lines.filter((line) => line !== "" && !/^#|^process_|^nodejs_/.test(line));
    }),
  );
  assertEquals(open, text);
  const types = (await bed.lines("", { headers: { accept: "application/openmetrics-text" } }))
    .filter((line) =>
      line.startsWith("# TYPE ratelimit_rule_hits") || line.endsWith("config_load_error unknown")
    );
  assertEquals(types, [
    "# TYPE ratelimit_service_config_load_error unknown",
    "# TYPE ratelimit_rule_hits counter",
  ]);
});

Deno.test("pull metrics: unread scrapes are limited, and end", async () => {
  const clock = new FakeClock(0);
  await using bed = new PullBed({ clock });
  for (let key = 0; key < 3_000; key++) bed.store.rule(`shop.account_${key}_${"x".repeat(900)}`);
  // A compressed text is small enough for the buffers of the system.
  const plain = () => bed.fetch("/metrics", { headers: { "accept-encoding": "identity" } });
  const taken = await Promise.all(Array.from({ length: 4 }, () => plain()));
  const refused = await bed.fetch();
  assertEquals([refused.status, refused.headers.get("retry-after"), await refused.text()], [
    503,
    "1",
    "Cannot serve metrics: 4 scrapes are running already\n",
  ]);
  await taken[0]?.body?.cancel();
  const again = await until("a place to be free", async () => {
    const response = await plain();
    if (response.status === 200) return response;
    await response.body?.cancel();
    return undefined;
  });
  clock.advance(60_000);
  const ends = await Promise.all([...taken.slice(1), again].map((response) => {
    return response.text().then(() => "whole", () => "cut");
  }));
  assertEquals(ends, ["cut", "cut", "cut", "cut"]);
  const { status, body } = await bed.fetch();
  await body?.cancel();
  assertEquals(status, 200);
});

/** A handler without a socket, where a piece is taken when the test takes it; its metrics have many pieces. */
function unboundHandler(clock: FakeClock): () => Promise<Response> {
  const store = new StatsStore(10_000);
  for (let key = 0; key < 3_000; key++) store.rule(`shop.account_${key}_${"x".repeat(900)}`);
  const handler = createPullHandler({
    store,
    path: "/metrics",
    native: false,
    timeAsMilliseconds: false,
    extraTags: new Map(),
    logger: { debug() {}, info() {}, warning() {}, error() {} },
    clock,
  });
  return () => handler(new Request("http://127.0.0.1/metrics"));
}

Deno.test("pull metrics: scrapes of which nothing is taken end early, and make place for others", async () => {
  const clock = new FakeClock(0);
  const ask = unboundHandler(clock);
  const idle = await Promise.all(Array.from({ length: 4 }, ask));
  await setImmediate();
  clock.advance(9_999);
  assertEquals((await ask()).status, 503);
  clock.advance(1);
  const next = await ask();
  assertEquals(next.status, 200);
  await next.body?.cancel();
  const ends = await Promise.all(idle.map((response) => response.text().then(() => "whole", () => "cut")));
  assertEquals([ends, clock.waiting], [["cut", "cut", "cut", "cut"], 0]);
});

Deno.test("pull metrics: a scrape that is taken slowly goes on, and ends after a minute", async () => {
  const clock = new FakeClock(0);
  const { body } = await unboundHandler(clock)();
  const reader = body?.getReader();
  for (let taken = 0; taken <= 6; taken++) {
    if (taken > 0) clock.advance(9_999);
    assertEquals((await reader?.read())?.done, false);
    await setImmediate();
  }
  clock.advance(6);
  const error = await assertRejects(async () => {
    while ((await reader?.read())?.done === false);
  });
  assertEquals(error.message, "Cannot finish the scrape: it was not read in time");
  assertEquals(clock.waiting, 0);
});

Deno.test("pull metrics: a scrape that is cut leaves nothing behind", async () => {
  await using bed = new PullBed();
  for (let key = 0; key < 3_000; key++) bed.store.rule(`shop.account_${key}_${"x".repeat(900)}`);
  const response = await bed.fetch();
  await bed[Symbol.asyncDispose]();
  assertEquals(await response.text().then(() => "whole", () => "cut"), "cut");
});

const SPAN = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };

Deno.test("pull metrics: OpenMetrics has exemplars in the buckets of their durations, or in the next that is shown", async () => {
  const exemplars = async (accept: string, mapping?: readonly MetricMapping[]) => {
    await using bed = new PullBed({ mapping });
    bed.work();
    const timer = bed.store.timer("ratelimit_server.ShouldRateLimit.response_time");
    timer.addExemplar({ span: SPAN, ms: 0.21, endedAt: 1_700_000_000_123 });
    timer.addExemplar({ span: SPAN, ms: 20_000, endedAt: 1_700_000_001_000 });
    const lines = await bed.lines("", { headers: { accept } });
    return lines.filter((line) => line.includes("trace_id"));
  };
  const shown = (bucket: string, bound: string, hits: number) => {
    const labels = `{trace_id="${SPAN.traceId}",span_id="${SPAN.spanId}"}`;
    return [
      `${bucket}="ShouldRateLimit",le="${bound}"} ${hits} # ${labels} 0.00021 1700000000.123`,
      `${bucket}="ShouldRateLimit",le="+Inf"} 4 # ${labels} 20 1700000001.000`,
    ];
  };
  const bucket = "ratelimit_service_response_time_seconds_bucket{grpc_method";
  assertEquals(await exemplars("application/openmetrics-text"), shown(bucket, "0.00025", 2));
  const took = [{ ...TOOK, bounds: [1] }];
  assertEquals(
    await exemplars("application/openmetrics-text", took),
    shown("took_ShouldRateLimit_bucket{method", "1", 3),
  );
  assertEquals(await exemplars("text/plain"), []);
});
