import { assertEquals, assertRejects } from "#assert";
import type { KvNode } from "../../../src/cache/kv/node.ts";
import { sliceLimit } from "../../../src/ratelimit/algorithms/slices.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { testKv, testRedis } from "../../harness/kv_bed.ts";
import { askNode, openKvNode, type OpenKvOptions } from "../../harness/open_kv.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { eventually, until } from "../../harness/until.ts";
import { turn, watchCall } from "./watched_call.ts";
import type { Counted } from "../../../src/ratelimit/algorithms/taken.ts";

/** A time-out that only a clock which a test moves gets to. */
const TIMEOUT_MS = 60_000;

function openNode(url: string, set: OpenKvOptions = {}): Promise<KvNode & AsyncDisposable> {
  return openKvNode(url, { poolSize: 1, ...set });
}

/** Keeps the one connection of a node busy until `end`; whatever is sent on it is answered afterwards. */
function block(node: KvNode, redis: Pick<RedisServer, "command">): { end(): Promise<void> } {
  const blocked = node.command(["BLPOP", "nothing", "0"]).catch(() => {});
  return {
    async end() {
      await redis.command("LPUSH", "nothing", "something");
      await blocked;
    },
  };
}

/** Why a call fails. */
async function failureOf(call: Promise<unknown>): Promise<string> {
  return (await assertRejects(() => call)).message;
}

function metric(node: KvNode, name: string): number | undefined {
  const { counters, gauges } = node.metrics;
  return new Map<string, () => number>(Object.entries({ ...counters, ...gauges })).get(name)?.();
}

testKv("kv node: with ERROR each call waits as long as was set, however many wait", async (redis) => {
  const clock = new FakeClock();
  await using node = await openNode(redis.url, { onEmpty: "ERROR", onEmptyWaitMs: 300, clock });
  const blocked = block(node, redis);
  const first = watchCall(askNode(node, [hit()]), clock);
  await turn();
  const waiting = [];
  const gap = 50;
  for (let call = 0; call < 3; call++) {
    const one = watchCall(askNode(node, [hit()]), clock);
    const two = watchCall(askNode(node, [{ ...hit(), limit: sliceLimit(5, 1) }]), clock);
    waiting.push(one, two);
    await turn();
    clock.advance(gap);
  }
  for (let passed = 3 * gap; passed < 300 + 3 * gap; passed += gap) {
    await turn();
    clock.advance(gap);
  }
  await turn();
  const failure = { message: "no connection was free within 300 ms", ms: 300 };
  assertEquals(waiting, waiting.map(() => [failure]));
  const late = watchCall(askNode(node, [hit({ addend: 7 })]), clock);
  await turn();
  clock.advance(299);
  await blocked.end();
  await until("the other calls to be answered", () => first.length > 0 && late.length > 0);
  await eventually([[{ answer: [7], ms: 299 }], 3], () => [late, metric(node, "exhausted")]);
});

testRedis("kv node: with CREATE one more connection is made, and closed after use", async (redis) => {
  await using relay = await startTcpRelay(redis.port);
  const clock = new FakeClock();
  await using node = await openNode(relay.url, { onEmpty: "CREATE", onEmptyWaitMs: 30, clock });
  const blocked = block(node, redis);
  const first = watchCall(askNode(node, [hit()]), clock);
  await turn();
  const second = watchCall(askNode(node, [hit({ addend: 7 })]), clock);
  await turn();
  clock.advance(30);
  await until("the second call to be answered", () => second.length > 0);
  assertEquals([first, second], [[], [{ answer: [7], ms: 30 }]]);
  await until("the second connection to be closed", () => relay.open === 1);
  await blocked.end();
  await until("the first call to be answered", () => first.length > 0);
  await eventually([[{ answer: [1], ms: 30 }], 2], () => [first, relay.accepted]);
  assertEquals([metric(node, "cx_total"), metric(node, "cx_active")], [2, 1]);
});

for (const onEmpty of ["CREATE", "ERROR"] as const) {
  testKv(`kv node: ${onEmpty} is kept where the wait is longer than the time-out`, async (redis) => {
    const clock = new FakeClock();
    const times = { onEmptyWaitMs: TIMEOUT_MS, timeoutMs: TIMEOUT_MS, clock };
    await using node = await openNode(redis.url, { onEmpty, ...times });
    const blocked = block(node, redis);
    const first = watchCall(askNode(node, [hit()]), clock);
    await turn();
    const second = watchCall(askNode(node, [hit({ addend: 7 })]), clock);
    await turn();
    clock.advance(TIMEOUT_MS / 2);
    await until("the second call to end", () => second.length > 0);
    const expected = onEmpty === "CREATE"
      ? { answer: [7] }
      : { message: "no connection was free within 30000 ms" };
    assertEquals([first, second], [[], [{ ...expected, ms: TIMEOUT_MS / 2 }]]);
    await blocked.end();
  });
}

testKv("kv node: with WAIT a call ends at the time-out of the cache", async (redis) => {
  const clock = new FakeClock();
  const times = { onEmptyWaitMs: 10, timeoutMs: TIMEOUT_MS, clock };
  await using node = await openNode(redis.url, { onEmpty: "WAIT", ...times });
  const blocked = block(node, redis);
  const first = watchCall(askNode(node, [hit()]), clock);
  await turn();
  const second = watchCall(askNode(node, [hit()]), clock);
  await turn();
  clock.advance(TIMEOUT_MS - 1);
  await turn();
  assertEquals([first, second], [[], []]);
  clock.advance(1);
  await turn();
  assertEquals([first, second], [
    [{ message: "no answer within 60000 ms", ms: TIMEOUT_MS }],
    [{ message: "no answer within 60000 ms", ms: TIMEOUT_MS }],
  ]);
  await until("counting to go on", async () => (await askNode(node, [hit()]))[0] === 1);
  await blocked.end();
});

testKv("kv node: hits of a caller that is gone before they are written are not counted", async (redis) => {
  await using node = await openNode(redis.url, { clock: new FakeClock() });
  const blocked = block(node, redis);
  const first = askNode(node, [hit()]);
  await Promise.resolve();
  const caller = { cancelled: false };
  const [left, stayed] = [hit({ addend: 5 }), hit({ addend: 6 })];
  const refused = failureOf(askNode(node, [left], { caller }));
  const answered = askNode(node, [stayed]);
  caller.cancelled = true;
  await blocked.end();
  assertEquals([await first, await answered, await refused], [[1], [6], "its caller is gone"]);
  assertEquals([await redis.command("EXISTS", left.key), await redis.command("GET", stayed.key)], [0, "6"]);
});

testRedis("kv node: what gathers within the window is one command", async (redis) => {
  for (const [windowMs, turns, commands] of [[0, 0, 1], [0, 1, 3], [0.15, 1, 1], [200, 1, 1]] as const) {
    const clock = new FakeClock();
    await using node = await openNode(redis.url, { windowMs, poolSize: 3, clock });
    await until("every connection", () => metric(node, "cx_active") === 3);
    await redis.command("CONFIG", "RESETSTAT");
    const one = hit();
    const asked: Promise<Counted[]>[] = [];
    for (let call = 0; call < 3; call++) {
      asked.push(askNode(node, [one]));
      for (let left = turns; left > 0; left--) await turn();
    }
    clock.advance(windowMs);
    assertEquals((await Promise.all(asked)).flat(), [1, 2, 3]);
    const stats = String(await redis.command("INFO", "commandstats"));
    assertEquals(/cmdstat_incrby:calls=(\d+)/.exec(stats)?.[1], String(commands), `window ${windowMs}`);
  }
});

testRedis("kv node: a demoted primary behind one address is left by itself", async (first) => {
  await using second = await startRedis({ args: ["--replicaof", `127.0.0.1 ${first.port}`] });
  await using relay = await startTcpRelay(first.port);
  await using node = await openNode(relay.url, { poolSize: 3 });
  const one = hit();
  assertEquals(await askNode(node, [one]), [1]);
  await until("the replica to follow", async () => await second.command("GET", one.key) === "1");
  await second.command("REPLICAOF", "NO", "ONE");
  await first.command("REPLICAOF", "127.0.0.1", second.port);
  relay.targetPort = second.port;
  const message = await failureOf(askNode(node, [one]));
  assertEquals(message.startsWith("READONLY "), true, message);
  assertEquals(await until("the new primary", () => askNode(node, [one])), [2]);
  assertEquals(await second.command("GET", one.key), "2");
  await until("all connections", () => relay.open === 3 && metric(node, "cx_active") === 3);
}, { args: ["--repl-diskless-sync-delay", "0"] });

testRedis("kv node: a server that takes connections and never answers holds no call up", async (redis) => {
  await using relay = await startTcpRelay(redis.port);
  const clock = new FakeClock();
  await using node = await openNode(relay.url, { poolSize: 2, timeoutMs: TIMEOUT_MS, clock });
  relay.setMode("stall");
  for (let call = 0; call < 8; call++) {
    const outcomes = watchCall(askNode(node, [hit()]), clock);
    await turn();
    clock.advance(TIMEOUT_MS);
    await turn();
    assertEquals(outcomes.map(({ answer }) => answer), [undefined], `call ${call}`);
  }
  assertEquals((metric(node, "timeouts") ?? 0) > 0, true);
  relay.setMode("relay");
  await until("counting to go on", async () => {
    // What failed again and again is tried again when time has passed.
    clock.advance(1_000);
    return (await askNode(node, [hit()]))[0] === 1;
  });
});

testRedis("kv node: a server that answers garbage fails calls and nothing else", async (redis) => {
  await using relay = await startTcpRelay(redis.port);
  await using node = await openNode(relay.url, { poolSize: 2, timeoutMs: TIMEOUT_MS });
  relay.setMode("garbage");
  relay.dropAll({ reset: true });
  const before = performance.now();
  for (let call = 0; call < 20; call++) await failureOf(askNode(node, [hit()]));
  // None of them has waited for the time-out.
  assertEquals(performance.now() - before < TIMEOUT_MS, true);
  relay.setMode("relay");
  relay.dropAll();
  await until("counting to go on", async () => (await askNode(node, [hit()]))[0] === 1);
});

Deno.test("kv node: error replies of the wrong server open the breaker, and it closes when they end", async () => {
  let refusing = true;
  let asked = 0;
  await using server = await startScriptedKv(() => {
    asked++;
    return refusing ? "-LOADING the data\r\n" : ":1\r\n";
  });
  const clock = new FakeClock();
  await using node = await openNode(server.url, { clock });
  await until("the breaker to open", async () => {
    clock.advance(1_000);
    await askNode(node, [hit()]).catch(() => {});
    return metric(node, "breaker_open") === 1;
  }, { intervalMs: 1 });
  const before = asked;
  clock.advance(10);
  await until("the connection to be back", () => node.connected, { intervalMs: 1 });
  const message = await failureOf(askNode(node, [hit()]));
  assertEquals(message, "it failed again and again, last: LOADING the data");
  assertEquals(asked, before);
  refusing = false;
  await until("the breaker to close", async () => {
    clock.advance(100);
    return (await askNode(node, [hit()]))[0] === 1;
  });
  await eventually([0, 1], () => [metric(node, "breaker_open"), metric(node, "breaker_opened")]);
});
