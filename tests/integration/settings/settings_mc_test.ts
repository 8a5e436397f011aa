import { assertEquals } from "#assert";
import { startMemcached } from "../../harness/memcached.ts";
import type { ServeFixture } from "../../harness/serve_fixture.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { compare, type Env, inFlight, noon, startShop, statusOf, whileStalled } from "./settings_bed.ts";

const mcTest = (name: string, fn: () => Promise<void>) =>
  Deno.test({ ...needs(["memcached"], `setting ${name}`), fn });

mcTest("MC_HOST_PORT: the nodes that counters are spread over", async () => {
  await using first = await startMemcached();
  await using second = await startMemcached();
  await compare({ MC_HOST_PORT: `${first.url},${second.url}` }, {
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: first.url },
    async look(service) {
      const status = await statusOf(service, ...Array.from({ length: 20 }, (_, index) => `open=k${index}`));
      const held = [await first.stat("curr_items"), await second.stat("curr_items")];
      await first.command("flush_all");
      return { status, isSpread: held.every((count) => count > 0) };
    },
    unset: { status: 200, isSpread: false },
    set: { status: 200, isSpread: true },
  });
});

mcTest("MC_KEY_DIGEST: a value with a blank counted", async () => {
  await using memcached = await startMemcached();
  await compare({ MC_KEY_DIGEST: "true" }, {
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: memcached.url },
    look: async (service) => [await statusOf(service, "open=a b"), await memcached.stat("curr_items")],
    unset: [400, 0],
    set: [200, 1],
  });
});

mcTest("MC_TIMEOUT: how long a connection to a node may take", async () => {
  await using memcached = await startMemcached();
  const clock = noon();
  const env = { BACKEND_TYPE: "mc", MC_HOST_PORT: memcached.url, MC_TIMEOUT: "77s" };
  await using service = await startShop(env, clock);
  assertEquals([await statusOf(service, "open=a"), clock.waits.includes(77_000)], [200, true]);
});

mcTest("MC_MAX_IDLE_CONNS: so many connections to a node", async () => {
  await using memcached = await startMemcached();
  await using relay = await startTcpRelay(memcached.port);
  await compare({ MC_MAX_IDLE_CONNS: "4" }, {
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: relay.url, MC_TIMEOUT: "1m" },
    async look(service) {
      const status = await statusOf(service, "open=a");
      const before = relay.accepted - 1;
      const calls: Promise<number>[] = [];
      await whileStalled(relay, async () => {
        // Each call finds those before it unanswered, and so requires another connection.
        for (let count = 1; count <= 5; count++) {
          calls.push(statusOf(service, `open=k${count}`));
          await inFlight(service, count);
        }
      });
      return { statuses: [status, ...await Promise.all(calls)], connections: relay.accepted - before };
    },
    unset: { statuses: Array(6).fill(200), connections: 2 },
    set: { statuses: Array(6).fill(200), connections: 4 },
  });
});

mcTest("MC_SRV, MC_SRV_REFRESH: the nodes that a record lists, which is looked up again", async () => {
  await using before = await startMemcached();
  await using after = await startMemcached();
  using names = new Names(before.port);
  const start = (env: Env) => startShop({ BACKEND_TYPE: "mc", ...env }, noon(8));
  const isAnswered = (service: ServeFixture) =>
    until("an answered call", async () => (await statusOf(service, "open=a")) === 200);
  await using once = await start({ MC_SRV: "_once._tcp.weir.test" });
  await using again = await start({ MC_SRV: "_again._tcp.weir.test", MC_SRV_REFRESH: "5ms" });
  for (const service of [once, again]) await isAnswered(service);
  names.port = after.port;
  await until("a call counted in the new node", async () => {
    await statusOf(again, "open=b");
    return (await after.stat("curr_items")) > 0;
  });
  assertEquals(await statusOf(once, "open=c"), 200);
  const lookups = names.asked.filter((name) => name === "_once._tcp.weir.test").length;
  assertEquals([await after.stat("curr_items"), lookups], [1, 1]);
  await using lost = await start({ MC_SRV: "_missing._tcp.weir.test" });
  const told = /Cannot look up MC_SRV; retrying" name="_missing\._tcp\.weir\.test"/;
  await until("the log to tell it", () => lost.log.some((line) => told.test(line)));
  assertEquals(await statusOf(lost, "open=a"), 503);
});

/** Lists one node, at this port of 127.0.0.1, under each name that the runtime looks up but those that are missing. */
class Names implements Disposable {
  readonly asked: string[] = [];
  readonly #resolve = Deno.resolveDns;

  constructor(public port: number) {
    Reflect.set(Deno, "resolveDns", (name: string, type: string) => {
      assertEquals(type, "SRV");
      this.asked.push(name);
      if (name.startsWith("_missing")) return Promise.reject(new Deno.errors.NotFound("no such name"));
      return Promise.resolve([{ priority: 0, weight: 0, port: this.port, target: "127.0.0.1" }]);
    });
  }

  [Symbol.dispose](): void {
    Reflect.set(Deno, "resolveDns", this.#resolve);
  }
}
