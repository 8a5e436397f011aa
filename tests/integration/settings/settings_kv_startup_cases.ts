import { assertEquals, assertMatch } from "@std/assert";
import { freePort } from "../../harness/free_port.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { startTcpRelay, type TcpRelay } from "../../harness/tcp_relay.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import { type Env, NOON, type SettingCases, SHOP } from "./settings_case.ts";

/** Tests of the attempts to connect at start. */
export const KV_STARTUP_CASES: SettingCases = {
  KV_STARTUP_INITIAL_INTERVAL: {
    sees: "more attempts in the same time",
    // By the longest waits five attempts take 0.2 s here; by the shortest ones the fourth comes after 3.5 s.
    run: () => hurries({ KV_STARTUP_INITIAL_INTERVAL: "10ms" }, { attempts: 5, others: 3 }),
  },
  KV_STARTUP_MAX_INTERVAL: {
    sees: "waits that grow no longer",
    // Without a bound the waits before the twelfth attempt are 10 s together, and with it half of one before the 20th.
    run: () =>
      hurries({ KV_STARTUP_MAX_INTERVAL: "20ms" }, {
        env: { KV_STARTUP_INITIAL_INTERVAL: "10ms" },
        attempts: 20,
        others: 11,
      }),
  },
  KV_STARTUP_MAX_ELAPSED_TIME: {
    sees: "the end of the process when there is no connection in that time",
    run: endsInTime,
  },
};

/** How two services are told from one another by their attempts to connect. */
interface Attempts {
  /** Settings of both. */
  readonly env?: Env;
  /** Attempts of the one that has the setting; the other one has made no more than `others` by then. */
  readonly attempts: number;
  readonly others: number;
}

async function hurries(changed: Env, { env = {}, attempts, others }: Attempts): Promise<void> {
  await using slow = await refusingRelay();
  await using fast = await refusingRelay();
  const start = (relay: TcpRelay, more: Env) => {
    const all = { BACKEND_TYPE: "kv", KV_URL: relay.url, ...env, ...more };
    return ServeFixture.start({ env: all, rules: SHOP, clock: NOON });
  };
  const services = await Promise.all([start(slow, {}), start(fast, changed)]);
  await using _first = services[0];
  await using _second = services[1];
  await until("the attempts", () => fast.accepted >= attempts);
  assertEquals({ some: slow.accepted > 0, few: slow.accepted <= others }, { some: true, few: true });
}

async function refusingRelay(): Promise<TcpRelay> {
  const relay = await startTcpRelay(freePort());
  relay.setMode("refuse");
  return relay;
}

async function endsInTime(): Promise<void> {
  await using relay = await refusingRelay();
  const waits = { KV_STARTUP_INITIAL_INTERVAL: "20ms", KV_STARTUP_MAX_INTERVAL: "20ms" };
  const env = { BACKEND_TYPE: "kv", KV_URL: relay.url, ...waits };
  const limit = { KV_STARTUP_MAX_ELAPSED_TIME: "60ms" };
  await using bounded = await startWeir({ env: { ...env, ...limit }, rules: SHOP, waitFor: [] });
  assertEquals((await bounded.exited).code, 1);
  assertMatch(
    bounded.stderrLines.join("\n"),
    /Cannot connect to key-value cache .*: no connection within KV_STARTUP_MAX_ELAPSED_TIME, 60 ms/,
  );
  await using patient = await ServeFixture.start({ env });
  // The waits of so many attempts are more than three times as long as that limit.
  const before = relay.accepted;
  await until("its attempts", () => relay.accepted >= before + 20);
  assertMatch(await patient.page("/healthcheck"), /^OK\ncache: no connection to /);
}
