import { assertEquals } from "#assert";
import { join } from "node:path";
import { ran } from "../../harness/administration_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { GrpcClient } from "../../harness/grpc_client.ts";
import { testKv } from "../../harness/kv_bed.ts";
import { QuotaStreamClient } from "../../harness/quota_stream_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";

const RULES = `
domain: shop
descriptors:
  - key: account
    rate_limit: { unit: second, requests_per_unit: 100 }
    descriptors:
      - key: plan
        value: free
        rate_limit: { unit: minute, requests_per_unit: 30 }
  - key: blocked
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: free
    rate_limit: { unlimited: true }
  - key: tried
    shadow_mode: true
    rate_limit: { unit: second, requests_per_unit: 10 }
  - key: jobs
    on_cache_failure: deny
    rate_limit: { algorithm: concurrency, max_in_flight: 3, lease: 10s }
`;
/** Until Envoys of an earlier process have reported. */
const SETTLED_MS = 6_000;

class QuotaBed implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly fixture: ServeFixture;
  readonly #client: GrpcClient;

  private constructor(clock: FakeClock, fixture: ServeFixture) {
    this.clock = clock;
    this.fixture = fixture;
    this.#client = new GrpcClient(fixture.grpcAddress);
  }

  static async open(env: Readonly<Record<string, string>> = {}): Promise<QuotaBed> {
    const clock = new FakeClock();
    const fixture = await ServeFixture.start({ clock, env, rules: { "shop.yaml": RULES } });
    clock.advance(SETTLED_MS);
    return new QuotaBed(clock, fixture);
  }

  stream(headers: Readonly<Record<string, string>> = {}): QuotaStreamClient {
    return new QuotaStreamClient(this.#client, headers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.fixture[Symbol.asyncDispose]();
  }
}

Deno.test("quotas: each rule is a quota, and reports are counted as its requests", async () => {
  await using bed = await QuotaBed.open();
  const stream = bed.stream();
  const buckets = [
    { account: "a" },
    { plan: "free", account: "a" },
    { blocked: "x" },
    { free: "x" },
    { tried: "x" },
    { jobs: "x" },
    { unknown: "x" },
  ];
  stream.report("shop", ...buckets.map((bucket) => ({ bucket, allowed: 1 })));
  await eventually({
    "account=a": "100/1 of 100 15",
    "account=a,plan=free": "1/2 of 1 15",
    "blocked=x": "deny 15",
    "free=x": "allow 15",
    "tried=x": "allow 15",
    "jobs=x": "deny 15",
    "unknown=x": "allow 15",
  }, () => stream.quotas);
  bed.clock.advance(5_000);
  stream.report("shop", { bucket: { account: "a" }, allowed: 400, denied: 100, elapsedSeconds: 5 });
  await eventually(8, () => stream.received.length);
  const stats = await bed.fixture.stats();
  const rule = "ratelimit.service.rate_limit.shop.account.";
  assertEquals(
    ["total_hits", "over_limit", "within_limit"].map((name) => stats[`${rule}${name}`]),
    [501, 100, 401],
  );
  const quota = ["streams", "buckets", "reports", "assignments", "impossible_buckets"];
  assertEquals(quota.map((name) => stats[`ratelimit.quota.${name}`]), [1, 7, 2, 8, 1]);
  stream.cancel();
  await eventually(0, async () => (await bed.fixture.stats())["ratelimit.quota.streams"]);
});

Deno.test("quotas: two clients share a limit, and a reload is in force immediately", async () => {
  await using bed = await QuotaBed.open();
  const [one, two] = [bed.stream({ "x-weir-client": "one" }), bed.stream({ "x-weir-client": "two" })];
  const bucket = { account: "a" };
  one.report("shop", { bucket, allowed: 1 });
  await eventually("100/1 of 100 15", () => one.quotas["account=a"]);
  two.report("shop", { bucket, allowed: 1 });
  // The smaller share must be in force first.
  await eventually([2, false, true], () => [
    one.received.length,
    one.quotas["account=a"] === "100/1 of 100 15",
    two.quotas["account=a"]?.startsWith("1/31536000"),
  ]);
  bed.clock.advance(5_000);
  one.report("shop", { bucket, allowed: 500, elapsedSeconds: 5 });
  await eventually(true, () => two.quotas["account=a"]?.startsWith("1/31536000") === false);
  await Deno.writeTextFile(
    join(bed.fixture.rulesFolder, "shop.yaml"),
    RULES.replace("requests_per_unit: 100", "requests_per_unit: 10"),
  );
  bed.fixture.reload();
  await eventually(true, () => rateOf(one.quotas["account=a"]) + rateOf(two.quotas["account=a"]) <= 10);
});

Deno.test("quotas: the connection of a direct client confirms that a smaller share is in force", async () => {
  for (const [engine, direct] of [["native", "true"], ["native", "false"], ["grpc-js", "true"]] as const) {
    await using bed = await QuotaBed.open({ GRPC_ENGINE: engine });
    const headers = { "x-weir-direct": direct };
    const [one, two] = [bed.stream(headers), bed.stream(headers)];
    const bucket = { account: "a" };
    one.report("shop", { bucket, allowed: 1 });
    await eventually("100/1 of 100 15", () => one.quotas["account=a"]);
    two.report("shop", { bucket, allowed: 1 });
    // Without a confirmation, the larger share of the first client is over after its time to live.
    let waitedMs = 0;
    await until("the second client to have its share", () => {
      if (rateOf(two.quotas["account=a"]) === 50) return true;
      bed.clock.advance(100);
      waitedMs += 100;
      return false;
    });
    assertEquals(
      waitedMs < 14_000,
      engine === "native" && direct === "true",
      `${engine} ${direct} ${waitedMs}`,
    );
  }
});

Deno.test("quotas: a bad bucket is skipped, a surplus one is decided, and neither ends the stream", async () => {
  await using bed = await QuotaBed.open({ QUOTA_MAX_BUCKETS_PER_STREAM: "1" });
  const stream = bed.stream();
  const long = "x".repeat(2_000);
  stream.report(
    "shop",
    { bucket: {}, allowed: 1 },
    { bucket: { account: long }, allowed: 1 },
    { bucket: Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`k${index}`, "v"])), allowed: 1 },
    { bucket: { free: "1" }, allowed: 1 },
    { bucket: { free: "2" }, allowed: 1 },
  );
  const quotas = { [`account=${long}`]: "abandon", "free=1": "allow 15", "free=2": "deny 15" };
  await eventually(quotas, () => stream.quotas);
  const stats = await bed.fixture.stats();
  assertEquals(["bad_buckets", "surplus_buckets"].map((name) => stats[`ratelimit.quota.${name}`]), [3, 1]);
  stream.cancel();
  await stream.answer;
});

Deno.test("quotas: streams that are refused or ended have a status with the reason", async () => {
  await using bed = await QuotaBed.open({ QUOTA_MAX_STREAMS: "1" });
  const status = async (stream: QuotaStreamClient) => {
    const { code, details } = await stream.answer;
    return [code, details];
  };
  const homeless = bed.stream();
  homeless.report("", { bucket: { free: "1" }, allowed: 1 });
  assertEquals(await status(homeless), [3, "a domain is required in the first message"]);
  const malformed = bed.stream();
  malformed.send(new Uint8Array([0x0a, 0x05]));
  assertEquals((await status(malformed))[0], 13);
  const first = bed.stream();
  first.report("shop", { bucket: { free: "1" }, allowed: 1 });
  await eventually("allow 15", () => first.quotas["free=1"]);
  const second = bed.stream();
  second.report("shop", { bucket: { free: "1" }, allowed: 1 });
  assertEquals(await status(second), [8, "too many streams of quotas"]);
  assertEquals((await bed.fixture.stats())["ratelimit.quota.streams_refused"], 2);
  const [ended] = await Promise.all([status(first), bed.fixture.stop()]);
  assertEquals(ended[0], 0);
});

Deno.test("quotas: the debug port shows buckets, limits and clients", async () => {
  await using bed = await QuotaBed.open();
  const stream = bed.stream({ "x-weir-client": "one" });
  const bucket = { plan: "free", account: "a" };
  stream.report("shop", { bucket, allowed: 1 }, { bucket: { unknown: "x" }, allowed: 1 });
  await eventually(2, () => stream.received.length);
  bed.clock.advance(2_000);
  const shown = JSON.parse(await bed.fixture.page("/quotas?domain=shop&bucket=plan=free,account=a"));
  assertEquals(shown, {
    buckets: 1,
    quotas: [{
      domain: "shop",
      bucket: [{ key: "account", value: "a" }, { key: "plan", value: "free" }],
      rule: "shop.account.plan_free",
      limit: { kind: "rate", perSecond: 0.5, burst: 30, isPerSecond: false },
      demand: 0,
      inForce: 0.5,
      clientCount: 1,
      clients: [{
        name: "one",
        isConnected: true,
        demand: 0,
        assignment: "tokens",
        share: 0.5,
        inForce: 0.5,
        secondsSinceReport: 2,
        why: "within its share",
      }],
    }],
  });
  assertEquals(JSON.parse(await bed.fixture.page("/quotas?domain=another")), { buckets: 0, quotas: [] });
});

Deno.test("quotas: memcached cannot divide them, which the status of a stream says", async () => {
  await using fixture = await ServeFixture.start({
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: "127.0.0.1:1" },
  });
  using client = new GrpcClient(fixture.grpcAddress);
  const stream = new QuotaStreamClient(client);
  stream.report("shop", { bucket: { free: "1" }, allowed: 1 });
  const { code, details } = await stream.answer;
  const why = "quotas require BACKEND_TYPE=kv or memory: memcached cannot divide a limit among instances";
  assertEquals([code, details], [12, why]);
  assertEquals(JSON.parse(await fixture.page("/quotas")), { buckets: 0, quotas: [], why });
  assertEquals(fixture.log.filter((line) => line.includes("A stream of quotas was refused")).length, 1);
});

Deno.test("quotas: weir counters peek shows a bucket with its clients, or why it has none", async () => {
  const ADMIN_TOKEN = "the-administration-token-of-this-test";
  await using bed = await QuotaBed.open({ ADMIN_TOKEN, QUOTA_MAX_BUCKETS_PER_STREAM: "1" });
  const stream = bed.stream({ "x-weir-client": "one" });
  stream.report("shop", { bucket: { plan: "free", account: "a" }, allowed: 1 });
  await eventually(1, () => stream.received.length);
  bed.clock.advance(5_000);
  stream.report("shop", {
    bucket: { plan: "free", account: "a" },
    allowed: 3,
    denied: 7,
    elapsedSeconds: 5,
  });
  await eventually(2, () => stream.received.length);
  const environment = { WEIR_URL: `http://${bed.fixture.running.addresses.http}`, ADMIN_TOKEN };
  const peek = (bucket: string) => ran(`counters peek --domain shop --bucket ${bucket}`, { environment });
  assertEquals(await peek("plan=free,account=a"), {
    code: 0,
    stdout: `domain       shop
rule         shop.account.plan_free
limit        {"kind":"rate","perSecond":0.5,"burst":30,"isPerSecond":false}
demand       2.2
inForce      0.5
clientCount  1

bucket:
  key      value
  account  a
  plan     free

clients:
  name  isConnected  demand  assignment  share  inForce  secondsSinceReport  why
  one   true         2.2     tokens      0.5    0.5      0                   requests above its share are refused
`,
    stderr: "",
  });
  const why = async (bucket: string) => JSON.parse((await peek(`${bucket} --json`)).stdout).why;
  assertEquals(await why("account=b"), "no client reports this bucket");
  stream.report("shop", { bucket: { account: "b" }, allowed: 1 });
  await eventually("deny 15", () => stream.quotas["account=b"]);
  assertEquals(
    await why("account=b"),
    "no client reports this bucket, or it is above QUOTA_MAX_BUCKETS_PER_STREAM or QUOTA_MAX_BUCKETS, where " +
      "QUOTA_OVERFLOW=deny decides",
  );
});

Deno.test("quotas: an exchange with the cache that fails is counted and logged", async () => {
  await using fixture = await ServeFixture.start({
    env: { BACKEND_TYPE: "kv", KV_URL: "127.0.0.1:1" },
    rules: { "shop.yaml": RULES },
  });
  using client = new GrpcClient(fixture.grpcAddress);
  new QuotaStreamClient(client).report("shop", { bucket: { account: "a" }, allowed: 1 });
  await until("a failed exchange", async () => {
    return (await fixture.stats())["ratelimit.quota.exchanges_failed"] !== 0;
  });
  await eventually(
    1,
    () => fixture.log.filter((line) => line.includes("Cannot share quotas with other instances")).length,
  );
});

testKv("quotas: two instances share a limit by a key-value cache", async (redis) => {
  const env = { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: "1m" };
  await using first = await QuotaBed.open(env);
  await using second = await QuotaBed.open(env);
  const beds = [first, second];
  const streams = beds.map((bed) => bed.stream());
  const bucket = { account: "a" };
  const rates = () => streams.map(({ quotas }) => rateOf(quotas["account=a"]));
  // Each round is a report of both. An exchange that the clock overtakes is made again, and so each has time for one.
  const roundly = { intervalMs: 250 };
  const round = () => {
    for (const [index, stream] of streams.entries()) {
      beds[index]?.clock.advance(5_000);
      stream.report("shop", { bucket, allowed: 250, denied: 250, elapsedSeconds: 5 });
    }
    return rates();
  };
  for (const stream of streams) stream.report("shop", { bucket, allowed: 1 });
  await until("both to have half", () => {
    const [one = 0, two = 0] = round();
    return one >= 45 && two >= 45 && one + two <= 100;
  }, roundly);
  streams[0]?.cancel();
  await until("the other to have all", () => {
    first.clock.advance(1_000);
    second.clock.advance(1_000);
    streams[1]?.report("shop", { bucket, allowed: 50, denied: 50, elapsedSeconds: 1 });
    const [, rate = 0] = rates();
    return rate >= 98;
  }, roundly);
});

/** The tokens per second of a quota as text. */
function rateOf(text = "0/1 of 0 0"): number {
  const [tokens, seconds] = text.split(" ")[0]?.split("/") ?? [];
  return Number(tokens) / Number(seconds);
}
