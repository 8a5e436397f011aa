import { assertEquals, assertMatch, assertRejects } from "#assert";
import type { Hit } from "../../../src/ratelimit/decision/counter_cache.ts";
import { storedMcKey } from "../../../src/cache/mc/keys.ts";
import { CacheError, InvalidRequestError } from "../../../src/ratelimit/errors.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { type Memcached, startMemcached } from "../../harness/memcached.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { refusal, testMc, withMc } from "../../harness/mc_bed.ts";
import { readCounts, take, takeCounts } from "../../harness/take.ts";

testMc(1, "counters are kept as long as asked for, also beyond 30 days", async (cache, _, server) => {
  const day = 86_400;
  const table: readonly [expiresInSeconds: number, left: [from: number, to: number]][] = [
    [30, [1, 31]],
    [600, [540, 601]],
    [30 * day - 1, [30 * day - 60, 30 * day]],
    [30 * day, [30 * day - 60, 30 * day + 2]],
    [30 * day + 1, [30 * day - 60, 30 * day + 3]],
    [365 * day + 300, [365 * day + 240, 365 * day + 302]],
    [100 * 365 * day, [-1, -1]],
    [4e11, [-1, -1]],
  ];
  for (const [expiresInSeconds, [from, to]] of table) {
    const one = hit({ expiresInSeconds });
    assertEquals(await takeCounts(cache, [one]), [1]);
    const left = await server.secondsLeft(one.key) ?? -2;
    assertEquals([expiresInSeconds, left >= from && left <= to || left], [expiresInSeconds, true]);
  }
});

testMc(
  1,
  "the first hit sets the expiry, and a counter that is over starts again",
  async (cache, _, server) => {
    const long = hit({ expiresInSeconds: 60 });
    await takeCounts(cache, [{ ...long, addend: 5 }]);
    assertEquals(await takeCounts(cache, [{ ...long, expiresInSeconds: 600 }]), [6]);
    const left = await server.secondsLeft(long.key) ?? -1;
    assertEquals(left > 0 && left <= 61 || left, true);
    const short = hit({ expiresInSeconds: 1 });
    await takeCounts(cache, [{ ...short, addend: 5 }]);
    await until("the counter to be over", async () => (await readCounts(cache, [short]))[0] === 0);
    assertEquals(await takeCounts(cache, [short]), [1]);
  },
);

testMc(3, "two instances on the same nodes count together and lose nothing", async (cache, servers) => {
  await withMc(servers.map(({ port }) => port), {}, async (other) => {
    await other.ready;
    const all = Array.from({ length: 20 }, () => hit());
    const calls = Array.from({ length: 500 }, (_, index) => {
      const hits = [all[index % 20] ?? hit(), all[(index + 7) % 20] ?? hit()];
      return takeCounts(index % 2 === 0 ? cache : other, hits).then((counts) =>
        counts.map((count, at) => [hits[at]?.key, count])
      );
    });
    const answers = (await Promise.all(calls)).flat().map(([key, count]) => `${key} ${count}`);
    const expected = all.flatMap(({ key }) =>
      Array.from({ length: 50 }, (_, index) => `${key} ${index + 1}`)
    );
    assertEquals(answers.sort(), expected.sort());
    assertEquals(await readCounts(other, all), all.map(() => 50));
  });
});

testMc(1, "hits of one key in a turn are one step", async (cache, _, server) => {
  const one = hit();
  const before = await server.stat("incr_hits");
  const counts = await Promise.all(Array.from({ length: 300 }, () => takeCounts(cache, [one])));
  assertEquals(counts.flat(), Array.from({ length: 300 }, (_, index) => index + 1));
  assertEquals(await server.stat("incr_hits") - before, 1);
});

testMc(1, "counters beyond what is exact stay beyond every limit", async (cache, _, server) => {
  const one = hit({ addend: 2 ** 53 });
  const together = await Promise.all(Array.from({ length: 50 }, () => takeCounts(cache, [one])));
  assertEquals(together.flat().every((count, index) => Number(count) >= 2 ** 53 * (index + 0.9)), true);
  for (let call = 0; call < 5; call++) {
    await server.command(`set ${one.key} 0 0 19\r\n9223372036854775807`);
    const [count = 0] = await takeCounts(cache, [one]);
    assertEquals(Number(count) > 2 ** 62, true);
    await until("what is too much to be taken off", async () => {
      return await server.value(one.key) === "9223372036854775807";
    });
  }
});

const LONG = "k".repeat(251);
const REFUSED: readonly [key: string, message: string][] = [
  [LONG, `"${"k".repeat(60)}…" as key of a counter: it has 251 bytes, and a memcached-style cache takes 250`],
  [
    "ä".repeat(126),
    `"${"ä".repeat(60)}…" as key of a counter: it has 252 bytes, and a memcached-style cache takes 250`,
  ],
  ["a b", '"a b" as key of a counter: a memcached-style cache takes no space and no control character'],
  [
    "a\r\nb",
    '"a\\r\\nb" as key of a counter: a memcached-style cache takes no space and no control character',
  ],
  ["a\x7fb", '"a\x7fb" as key of a counter: a memcached-style cache takes no space and no control character'],
  ["", '"" as key of a counter: a memcached-style cache takes no empty key'],
];

testMc(1, "a key that cannot be held fails its call before anything is sent", async (cache, _, server) => {
  const good = hit();
  for (const [key, message] of REFUSED) {
    for (
      const ask of [
        () => takeCounts(cache, [good, hit({ key })]),
        () => readCounts(cache, [hit({ key })]),
        () => cache.remove([key]),
        () => take(cache.counterOf(hit({ key })), 1),
      ]
    ) {
      const error = await refusal(ask, InvalidRequestError);
      assertEquals([error.message, error.backend], [`Cannot use ${message}`, "mc"]);
    }
  }
  assertEquals(await server.value(good.key), undefined);
  const longest = [hit({ key: "k".repeat(250) }), hit({ key: "ä".repeat(125) })];
  assertEquals([await takeCounts(cache, longest), await readCounts(cache, longest)], [[1, 1], [1, 1]]);
});

Deno.test({
  ...needs(["memcached"], "mc cache: a single hit of a key that cannot be held is counted under its digest"),
  async fn() {
    await using server = await startMemcached();
    await withMc([server.port], { digestPrefix: "p:" }, async (cache) => {
      await cache.ready;
      const one = hit({ key: LONG });
      const counter = cache.counterOf(one);
      assertEquals([await takeCounts(cache, [one]), await take(counter, 1), await take(counter, 1)], [
        [1],
        2,
        3,
      ]);
    });
  },
});

Deno.test("mc keys: a digest keeps the prefix and the window, and stands for the whole key", () => {
  const digest = "22220d5b35c3867115fb8230ca312f4bb19ef887e42113040322b4752cb7f997";
  const key = "p:shop_agent_Mozilla 5.0_1700000000";
  assertEquals(storedMcKey(key, "p:"), `p:sha256_${digest}_1700000000`);
  for (const prefix of ["p: ", "p".repeat(151)]) {
    assertEquals(storedMcKey(key, prefix), `sha256_${digest}_1700000000`);
  }
  for (const held of ["p:shop_a_b_1", "ä".repeat(125)]) assertEquals(storedMcKey(held, "p:"), held);
  const [one, other] = ["a", "b"].map((end) => storedMcKey(`p:shop_k_${"v".repeat(300)}${end}_60`, "p:"));
  assertMatch(one ?? "", /^p:sha256_[0-9a-f]{64}_60$/);
  assertEquals(one === other, false);
});

testMc(1, "what is no counter fails its own call and no other", async (cache, _, server) => {
  const [good, bad] = [hit(), hit()];
  await server.command(`set ${bad.key} 0 0 4\r\ntext`);
  const [first, failed, last] = await Promise.allSettled([
    takeCounts(cache, [good]),
    takeCounts(cache, [bad, good]),
    takeCounts(cache, [good]),
  ]);
  assertEquals([first, last], [{ status: "fulfilled", value: [1] }, { status: "fulfilled", value: [3] }]);
  const error = failed?.status === "rejected" ? failed.reason : undefined;
  const prefix = `Cannot query memcached-style cache "${server.url}": `;
  assertEquals(error instanceof CacheError && [error.message, error.backend], [
    `${prefix}CLIENT_ERROR cannot increment or decrement non-numeric value`,
    "mc",
  ]);
  const unread = await refusal(() => readCounts(cache, [bad]), CacheError);
  assertEquals(unread.message, `${prefix}the counter is "text", which is not a whole number`);
});

testMc(1, "hits of a caller who is gone before they are written do not count", async (cache, _, server) => {
  const one = hit();
  const caller = { cancelled: false };
  const left = takeCounts(cache, [one], caller);
  const stays = takeCounts(cache, [one], { cancelled: false });
  caller.cancelled = true;
  const error = await refusal(() => left, CacheError);
  assertMatch(error.message, /: its caller is gone$/);
  assertEquals([await stays, await server.value(one.key)], [[1], "1"]);
});

testMc(1, "holds no more connections than its limit", async (_, __, server) => {
  for (const [maxIdleConnections, expected] of [[0, 1], [1, 1], [3, 3]] as const) {
    const before = await server.stat("curr_connections");
    await withMc([server.port], { maxIdleConnections }, async (cache) => {
      await cache.ready;
      const active = () => cache.metrics.gauges["cx_active"]?.();
      const callTogether = async () => {
        const calls = [];
        for (let call = 0; call < 10; call++) {
          calls.push(takeCounts(cache, [hit()]));
          await Promise.resolve();
        }
        await Promise.all(calls);
      };
      // A server may take a connection long after the calls for which it is opened.
      await until("the connections", async () => {
        await callTogether();
        return active() === expected;
      });
      for (let round = 0; round < 20; round++) await callTogether();
      const added = await server.stat("curr_connections") - before;
      assertEquals([added, active()], [expected, expected]);
    });
    await until("the connections to be closed", async () => await server.stat("curr_connections") === before);
  }
});

testMc(1, "the metrics tell what the node was sent", async (cache, _, server) => {
  const [one, bad] = [hit(), hit()];
  await takeCounts(cache, [one]);
  await takeCounts(cache, [one]);
  await readCounts(cache, [one, hit()]);
  await takeCounts(cache, [hit({ addend: -1 })]);
  await server.command(`set ${bad.key} 0 0 4\r\ntext`);
  await assertRejects(() => takeCounts(cache, [bad]));
  const { counters, gauges } = cache.metrics;
  const values = Object.fromEntries(
    [...Object.entries(counters), ...Object.entries(gauges)].map(([name, value]) => [name, value()]),
  );
  assertEquals(values, {
    "multiget.success": 2,
    "multiget.error": 0,
    "increment.success": 2,
    "increment.miss": 1,
    "increment.error": 1,
    "add.success": 1,
    "add.not_stored": 2,
    "add.error": 0,
    keys_requested: 2,
    keys_found: 1,
    timeouts: 0,
    cx_total: 1,
    breaker_opened: 0,
    cx_active: 1,
    breaker_open: 0,
    nodes: 1,
  });
});

interface TableRow {
  readonly nodes: readonly string[];
  readonly key: string;
  readonly node: string;
}

Deno.test({
  ...needs(["memcached"], "mc cache: the node of a key is the one that others choose"),
  async fn() {
    const { rows } = JSON.parse(
      await Deno.readTextFile(new URL("../../testdata/mc-nodes.json", import.meta.url)),
    );
    await using stack = new AsyncDisposableStack();
    const servers: Memcached[] = [];
    for (let count = 0; count < 5; count++) servers.push(stack.use(await startMemcached()));
    for (const { nodes, key, node } of rows as readonly TableRow[]) {
      const used = servers.slice(0, nodes.length);
      await withMc(used.map(({ port }) => port), {}, async (cache) => {
        await cache.ready;
        const one: Hit = hit({ key, addend: 7 });
        await takeCounts(cache, [one]);
        const holders = [];
        for (const [index, server] of used.entries()) {
          if (await server.value(key) !== undefined) holders.push(nodes[index]);
        }
        assertEquals([key, holders], [key, [node]]);
        await cache.remove([key]);
      });
    }
  },
});

testMc(
  2,
  "calls fail until the nodes of a name are known, and nodes that it lists no more are let go",
  async (_, [first, second]) => {
    if (first === undefined || second === undefined) throw new Error("There are no servers");
    let listed: Memcached | undefined;
    const told: string[] = [];
    const hosts = {
      name: "_mc._tcp.test",
      refreshMs: 30,
      resolveSrv: () =>
        listed === undefined
          ? Promise.reject(new Error("no record"))
          : Promise.resolve([{ target: "127.0.0.1", port: listed.port }]),
    };
    const onLookup = (found: boolean, reason: string) => void told.push(`${found} ${reason}`);
    await withMc([], { hosts, onLookup }, async (cache) => {
      await until("the failed look-up", () => told.length > 0);
      assertEquals(
        (await refusal(() => takeCounts(cache, [hit()]), CacheError)).message,
        'Cannot query memcached-style cache "_mc._tcp.test": its nodes are not known yet: no record',
      );
      const before = await first.stat("curr_connections");
      listed = first;
      await cache.ready;
      const one = hit();
      assertEquals([await takeCounts(cache, [one]), await first.value(one.key)], [[1], "1"]);
      listed = second;
      await until("the node to be let go", async () => await first.stat("curr_connections") <= before);
      assertEquals(await until("the new node", () => takeCounts(cache, [one]).catch(() => undefined)), [1]);
      assertEquals([await second.value(one.key), told], ["1", ["false no record", "true "]]);
    });
  },
);
