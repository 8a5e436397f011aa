import { assertEquals } from "@std/assert";
import type { RedisServer } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { startTcpRelay, type TcpRelay } from "../../harness/tcp_relay.ts";
import { until } from "../../harness/until.ts";
import { compare, type Env, NOON, type SettingCase, type SettingCases } from "./settings_case.ts";
import {
  gaugeOf,
  inFlight,
  kvEnv,
  MAIN,
  REDIS,
  requestFor,
  RULES,
  statusOf,
  watched,
  type WhichCache,
  whileStalled,
  withRedis,
} from "./settings_kv_bed.ts";

/** How many connections are kept when nothing is set. */
const DEFAULT_POOL_SIZE = 10;

/** Tests of the connections to the key-value cache. */
export const KV_POOL_CASES: SettingCases = {
  KV_POOL_SIZE: poolSizeCase(MAIN),
  KV_POOL_ON_EMPTY_BEHAVIOR: onEmptyCase(MAIN),
  KV_POOL_ON_EMPTY_WAIT_DURATION: onEmptyWaitCase(MAIN),
};

/** `…_POOL_SIZE`. */
export function poolSizeCase(which: WhichCache): SettingCase {
  const run = () =>
    withRedis(async (redis) => {
      const sizes: readonly (readonly [more: Env, size: number])[] = [
        [{}, DEFAULT_POOL_SIZE],
        [{ POOL_SIZE: "3" }, 3],
      ];
      for (const [more, size] of sizes) await keepsConnections({ which, redis, more, size });
    });
  return { sees: "so many connections kept open", tools: REDIS, run };
}

/** `…_POOL_ON_EMPTY_BEHAVIOR`. */
export function onEmptyCase(which: WhichCache): SettingCase {
  const env = { POOL_SIZE: "1", POOL_ON_EMPTY_WAIT_DURATION: "100ms" };
  const run = () =>
    withRelay((relay) =>
      compare({ [`${which.prefix}_POOL_ON_EMPTY_BEHAVIOR`]: "error" }, {
        env: kvEnv(which, relay.url, env),
        rules: RULES,
        look: (service) => secondBesideStalled(service, which, relay),
        unset: { connected: 1, first: 200, second: 200 },
        set: { connected: 0, first: 200, second: 503 },
      })
    );
  return { sees: "a call refused in place of one more connection", tools: REDIS, run };
}

/** `…_POOL_ON_EMPTY_WAIT_DURATION`. */
export function onEmptyWaitCase(which: WhichCache): SettingCase {
  const env: Env = { POOL_SIZE: "1", POOL_ON_EMPTY_BEHAVIOR: "ERROR" };
  const run = () =>
    withRelay(async (relay) => {
      const seen = [];
      for (const more of [{}, { POOL_ON_EMPTY_WAIT_DURATION: "50ms" }]) {
        seen.push(await refusalBesideStalled(which, relay, { ...env, ...more }));
      }
      assertEquals(seen, [{ told: "1000 ms", isShort: false }, { told: "50 ms", isShort: true }]);
    });
  return { sees: "a call refused sooner", tools: REDIS, run };
}

/** Waits for so many connections, and looks again when a call was answered: there are no more of them. */
async function keepsConnections(
  { which, redis, more, size }: { which: WhichCache; redis: RedisServer; more: Env; size: number },
): Promise<void> {
  const env = kvEnv(which, redis.url, more);
  await using service = await ServeFixture.start({ env, rules: RULES, clock: NOON });
  await until(`${size} connections`, async () => (await connectionsTo(redis)) === size);
  assertEquals(await statusOf(service, which), 200);
  const told = await gaugeOf(service, `${which.metrics}.cx_active`);
  assertEquals([await connectionsTo(redis), told], [size, size]);
}

/** Connections to a server beside the one that asks. */
async function connectionsTo(redis: RedisServer): Promise<number> {
  const clients = String(await redis.command("CLIENT", "LIST", "TYPE", "normal")).trimEnd();
  return clients.split("\n").length - 1;
}

async function withRelay(work: (relay: TcpRelay) => Promise<void>): Promise<void> {
  await withRedis(async (redis) => {
    await using relay = await startTcpRelay(redis.port);
    await work(relay);
  });
}

/** Asks twice while the only connection stands still; counts the connections made in between. */
async function secondBesideStalled(
  service: ServeFixture,
  which: WhichCache,
  relay: TcpRelay,
): Promise<{ connected: number; first: number; second: number }> {
  await connected(service, which);
  const before = relay.accepted;
  const [first, second] = await whileStalled(relay, async () => {
    const calls = [watched(statusOf(service, which, "a"))];
    await inFlight(service, 1);
    calls.push(watched(statusOf(service, which, "b")));
    await until(
      "one more connection or the end of a call",
      () => relay.accepted > before || calls.some(({ isOver }) => isOver()),
    );
    return calls;
  });
  const statuses = { first: await first?.call ?? 0, second: await second?.call ?? 0 };
  return { connected: relay.accepted - before, ...statuses };
}

/** How long a second call waits while the only connection stands still: as it is told, and by the clock. */
async function refusalBesideStalled(
  which: WhichCache,
  relay: TcpRelay,
  more: Env,
): Promise<{ told: string | undefined; isShort: boolean }> {
  let isAsked = false;
  let isShort = false;
  const after = (delayMs: number, run: () => void) => {
    isShort ||= isAsked && delayMs === 50;
    return NOON.after(delayMs, run);
  };
  const env = kvEnv(which, relay.url, more);
  await using service = await ServeFixture.start({ env, rules: RULES, clock: { ...NOON, after } });
  await connected(service, which);
  return await whileStalled(relay, async () => {
    const first = statusOf(service, which, "a");
    await inFlight(service, 1);
    isAsked = true;
    const { body } = await service.ask(requestFor(which, "b"));
    isAsked = false;
    relay.setMode("relay");
    assertEquals(await first, 200);
    return { told: /no connection was free within (\d+ ms)/.exec(JSON.stringify(body))?.[1], isShort };
  });
}

async function connected(service: ServeFixture, which: WhichCache): Promise<void> {
  await until(
    "the connection",
    async () => (await gaugeOf(service, `${which.metrics}.cx_active`)) === 1,
  );
}
