import { assertEquals } from "@std/assert";
import { type Memcached, startMemcached } from "../../harness/memcached.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { startTcpRelay, type TcpRelay } from "../../harness/tcp_relay.ts";
import { compare, NOON, type SettingCases, SHOP, shopRequest, SLOW_NOON } from "./settings_case.ts";
import { inFlight, whileStalled } from "./settings_kv_bed.ts";

/** Tests of the nodes of the memcached-style cache. */
export const MC_CASES: SettingCases = {
  MC_HOST_PORT: { sees: "the nodes that counters are spread over", tools: ["memcached"], run: spreads },
  MC_TIMEOUT: { sees: "a node that does not answer given up sooner", tools: ["memcached"], run: timesOut },
  MC_KEY_DIGEST: { sees: "a value with a blank counted", tools: ["memcached"], run: digests },
  MC_MAX_IDLE_CONNS: { sees: "so many connections to a node", tools: ["memcached"], run: keepsConnections },
};

async function spreads(): Promise<void> {
  await using first = await startMemcached();
  await using second = await startMemcached();
  await compare({ MC_HOST_PORT: `${first.url},${second.url}` }, {
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: first.url },
    clock: SLOW_NOON,
    async look(service) {
      const values = Array.from({ length: 20 }, (_, index) => `open=k${index}`);
      const { status } = await service.ask(shopRequest(...values));
      const held = await Promise.all([first, second].map(countersOf));
      await first.command("flush_all");
      return { status, all: held.reduce((sum, count) => sum + count), inSecond: (held[1] ?? 0) > 0 };
    },
    unset: { status: 200, all: 20, inSecond: false },
    set: { status: 200, all: 20, inSecond: true },
  });
}

async function timesOut(): Promise<void> {
  await using memcached = await startMemcached();
  await using relay = await startTcpRelay(memcached.port);
  for (const seconds of [33, 44]) {
    // Time passes for what waits so long when the test says so.
    let aheadMs = 0;
    const deadlines = new Set<() => void>();
    const after = (delayMs: number, run: () => void) => {
      if (delayMs < 20_000) return NOON.after(delayMs, run);
      deadlines.add(run);
      return () => void deadlines.delete(run);
    };
    const clock = { ...NOON, elapsed: () => NOON.elapsed() + aheadMs, after };
    const env = { BACKEND_TYPE: "mc", MC_HOST_PORT: relay.url, MC_TIMEOUT: `${seconds}s` };
    await using service = await ServeFixture.start({ env, rules: SHOP, clock });
    assertEquals((await service.ask(shopRequest("open=a"))).status, 200);
    await whileStalled(relay, async () => {
      const call = service.ask(shopRequest("open=a"));
      await inFlight(service, 1);
      aheadMs = 60_000;
      for (const run of [...deadlines]) run();
      const { status, body } = await call;
      const told = /no answer within (\d+)/.exec(JSON.stringify(body))?.[1];
      assertEquals([status, told], [503, `${seconds}000`]);
    });
  }
}

async function digests(): Promise<void> {
  await using memcached = await startMemcached();
  await compare({ MC_KEY_DIGEST: "true" }, {
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: memcached.url },
    clock: SLOW_NOON,
    async look(service) {
      const { status } = await service.ask(shopRequest("open=a b"));
      return { status, counters: await countersOf(memcached) };
    },
    unset: { status: 400, counters: 0 },
    set: { status: 200, counters: 1 },
  });
}

async function keepsConnections(): Promise<void> {
  await using memcached = await startMemcached();
  await using relay = await startTcpRelay(memcached.port);
  await compare({ MC_MAX_IDLE_CONNS: "4" }, {
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: relay.url },
    clock: SLOW_NOON,
    look: (service) => connectionsUnderLoad(service, relay),
    unset: { connections: 2, statuses: [200, 200, 200, 200, 200, 200] },
    set: { connections: 4, statuses: [200, 200, 200, 200, 200, 200] },
  });
}

/** Each call finds those before it unanswered, and so wants a connection of its own. */
async function connectionsUnderLoad(
  service: ServeFixture,
  relay: TcpRelay,
): Promise<{ connections: number; statuses: readonly number[] }> {
  const { status } = await service.ask(shopRequest("open=a"));
  const before = relay.accepted - 1;
  const calls: Promise<{ status: number }>[] = [];
  await whileStalled(relay, async () => {
    for (let count = 1; count <= 5; count++) {
      calls.push(service.ask(shopRequest(`open=k${count}`)));
      await inFlight(service, count);
    }
  });
  const answers = await Promise.all(calls);
  return {
    connections: relay.accepted - before,
    statuses: [status, ...answers.map((answer) => answer.status)],
  };
}

/** Counters that a server has at this moment. */
async function countersOf(memcached: Memcached): Promise<number> {
  return await memcached.stat("curr_items");
}
