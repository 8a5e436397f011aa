import { assertEquals, assertMatch, assertRejects } from "#assert";
import type { KvNode } from "../../../src/cache/kv/node.ts";
import type { Hit } from "../../../src/ratelimit/decision/counter_cache.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { handled } from "../../harness/handled.ts";
import { testKv, testRedis } from "../../harness/kv_bed.ts";
import { askNode, openKvCache, openKvNode } from "../../harness/open_kv.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { startScriptedKv } from "../../harness/scripted_cache.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { takeCounts } from "../../harness/take.ts";

function metric(node: KvNode, name: string): number | undefined {
  const { counters, gauges } = node.metrics;
  return new Map<string, () => number>(Object.entries({ ...counters, ...gauges })).get(name)?.();
}

async function textOf(call: Promise<unknown>): Promise<string> {
  return (await assertRejects(() => call)).message;
}

/** Answers INCRBY with what it adds, so that a caller can tell its own answer. */
function echo([name = "", , addend]: readonly string[]): string {
  return name === "INCRBY" ? `:${addend}\r\n` : ":1\r\n";
}

for (const unasked of ["$-1\r\n", ":424242\r\n", "-ERR not asked for\r\n", "*-1\r\n"]) {
  Deno.test(`kv node: an unsolicited answer ends its connection: ${JSON.stringify(unasked)}`, async () => {
    let isTold = false;
    await using server = await startScriptedKv((command, socket) => {
      socket.write(echo(command));
      if (command[0] !== "EXPIRE" || isTold) return undefined;
      isTold = true;
      return unasked;
    });
    await using node = await openKvNode(server.url, { poolSize: 1 });
    assertEquals(await askNode(node, [hit({ addend: 3 })]), [3]);
    await until("another connection", () => server.accepted === 2 && node.connected);
    for (const addend of [5, 6, 7]) assertEquals(await askNode(node, [hit({ addend })]), [addend]);
  });
}

Deno.test("kv node: a server that closes at every command opens the breaker, and is left in peace", async () => {
  await using server = await startScriptedKv((_, socket) => void socket.destroy());
  await using node = await openKvNode(server.url, { poolSize: 2 });
  const texts = new Set<string>();
  await until("the breaker to open", async () => {
    texts.add(await textOf(askNode(node, [hit()])));
    return metric(node, "breaker_open") === 1;
  }, { intervalMs: 1 });
  assertEquals([...texts].filter((text) => !text.includes("closed")), []);
  assertEquals([metric(node, "breaker_opened"), server.accepted < 20], [1, true], String(server.accepted));
});

Deno.test("kv node: a long error of a server is cut", async () => {
  await using server = await startScriptedKv(() => `-ERR ${"x".repeat(300_000)}\r\n`);
  await using node = await openKvNode(server.url);
  assertEquals(await textOf(askNode(node, [hit()])), `ERR ${"x".repeat(196)}…`);
});

testKv("kv node: a counter that can go no higher is over every limit, and stays", async (redis) => {
  await using node = await openKvNode(redis.url);
  const one = hit();
  await redis.command("SET", one.key, "9223372036854775807");
  assertEquals(await askNode(node, [one]), [2 ** 53]);
  assertEquals(await redis.command("GET", one.key), "9223372036854775807");
});

Deno.test({
  ...needs(["redis-server"], "kv node: hits on their way to another node take their turn with the others"),
  async fn() {
    const busPort = String(freePort());
    await using redis = await startRedis({ args: ["--cluster-enabled", "yes", "--cluster-port", busPort] });
    await redis.command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
    await until(
      "the cluster",
      async () => String(await redis.command("CLUSTER", "INFO")).includes("state:ok"),
    );
    await using node = await openKvNode(redis.url, { poolSize: 1, onEmpty: "WAIT" });
    let running = true;
    const plain = async () => {
      while (running) await askNode(node, [hit()]);
    };
    const load = handled(Promise.all([plain(), plain(), plain()]));
    try {
      for (let call = 0; call < 20; call++) assertEquals(await askNode(node, [hit()], { asking: true }), [1]);
    } finally {
      running = false;
    }
    await load;
  },
});

testRedis("kv node: a counter that turns out to be new gets its expiry after an outage", async (redis) => {
  await using relay = await startTcpRelay(redis.port);
  const clock = new FakeClock();
  const windowMs = 300;
  await using node = await openKvNode(relay.url, { poolSize: 1, windowMs, clock });
  const ask = (...hits: Hit[]) => {
    const answer = askNode(node, hits);
    clock.advance(windowMs);
    return answer;
  };
  const one = hit();
  await ask(one);
  await redis.command("FLUSHALL");
  assertEquals(await ask(one), [1]);
  // It gathers for the next write, which does not come while the clock stands still.
  assertEquals(Number(await redis.command("TTL", one.key)), -1);
  relay.dropAll({ reset: true });
  await until("another connection", () => metric(node, "cx_total") === 2);
  await ask(hit());
  await until("the expiry", async () => Number(await redis.command("TTL", one.key)) > 0);
});

Deno.test("kv node: an expiry that is due is not lost when the server turns out to be the wrong one", async () => {
  const [mine, other] = [hit({ addend: 3 }), hit()];
  const expired: unknown[] = [];
  let isWrong = false;
  await using server = await startScriptedKv((command) => {
    if (command[0] === "EXPIRE") expired.push(command[1]);
    return isWrong && command[1] === other.key ? "-READONLY a replica\r\n" : echo(command);
  });
  await using node = await openKvNode(server.url, { poolSize: 1 });
  await askNode(node, [mine]);
  isWrong = true;
  assertEquals(await textOf(askNode(node, [mine, other])), "READONLY a replica");
  await until("another connection", () => server.accepted === 2 && node.connected);
  const third = hit();
  await askNode(node, [third]);
  // At first, with what it may not do, and with the one that had turned out to be new.
  assertEquals(expired, [mine.key, other.key, mine.key, third.key]);
});

Deno.test("kv cache: a database that is refused, and then not answered for, throws nothing outside", async () => {
  let selects = 0;
  await using server = await startScriptedKv(([name], socket) => {
    if (name?.toLowerCase() !== "select") return ":1\r\n";
    if (++selects % 2 === 1) return "-ERR DB index is out of range\r\n";
    // The client selects once more by itself; what it is promised must not be lost.
    return void socket.destroy();
  });
  const cache = openKvCache(`redis://${server.url}/99`, { poolSize: 1 });
  await until("some attempts", () => server.accepted >= 6);
  assertEquals(cache.connected, false);
  await cache.close();
});

Deno.test("kv cache: a removal that is not answered ends its connection, as calls do", async () => {
  await using server = await startScriptedKv(([name]) => {
    return name === "DEL" && server.accepted === 1 ? undefined : ":1\r\n";
  });
  await using cache = openKvCache(server.url, { poolSize: 1, timeoutMs: 200 });
  await cache.ready;
  assertMatch(await textOf(cache.remove(["a"])), /no answer within 200 ms$/);
  await until("another connection", () => server.accepted === 2 && cache.connected);
  await cache.remove(["a"]);
});

Deno.test("kv cache: a server that repeats the login in its error does not make it known", async () => {
  const reasons: string[] = [];
  await using server = await startScriptedKv(([name = "", ...args]) => {
    if (name !== "AUTH") return ":1\r\n";
    const shown = args.map((arg) => `'${arg.slice(0, 100)}'`).join(" ");
    return args[0]?.startsWith("begin")
      ? `-ERR unknown command 'AUTH', with args beginning with: ${shown} \r\n`
      : `-ERR cannot use ${shown}\r\n`;
  });
  for (const auth of ["word-of-4711", `begin-${"4711".repeat(50)}`]) {
    await using cache = openKvCache(server.url, {
      auth,
      onConnection: (_, reason) => reasons.push(reason, auth),
    });
    await until("a refused login", () => reasons.at(-1) === auth);
    const text = await textOf(takeCounts(cache, [hit()]));
    assertEquals([text.includes("4711"), reasons.at(-2)?.includes("4711")], [false, false], text);
  }
  assertEquals(reasons.filter((_, index) => index % 2 === 0), [
    "ERR cannot use '(value not shown)'",
    "ERR unknown command 'AUTH'",
  ]);
});
