import { assertEquals } from "@std/assert";
import { TcpReceiver, UdpReceiver } from "../../harness/push_receivers.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import {
  type Env,
  NOON,
  type SettingCase,
  type SettingCases,
  SHOP,
  shopRequest,
  SLOW_NOON,
} from "./settings_case.ts";

const RULE = "ratelimit.service.rate_limit.shop.open";
const HITS = `${RULE}.total_hits`;
const OTHER_HOST = "127.0.0.2";
/** Every test says how its statistics go out, whatever other tests have. */
const SENT: Env = { DISABLE_STATS: "false", PUSH_STATS_HOST: "127.0.0.1" };

const FAMILY = "TAGGED_PUSH_STATS_MOGRIFIER_RULES";
const MOGRIFIER: Env = {
  USE_TAGGED_PUSH_STATS: "true",
  [`${FAMILY}_PATTERN`]: "^ratelimit\\.service\\.rate_limit\\.([^.]+)\\.(.+)\\.total_hits$",
  [`${FAMILY}_NAME`]: "hits.$1",
};
const LISTED: Env = { ...MOGRIFIER, TAGGED_PUSH_STATS_MOGRIFIERS: "RULES" };
const NOT_REWRITTEN = { tcp: [], udp: [`${HITS}:1|c`] };

/** Tests of statistics that are sent out. */
export const PUSH_CASES: SettingCases = {
  DISABLE_STATS: differs("nothing sent anywhere", {
    changed: { DISABLE_STATS: "true" },
    unset: { tcp: [`${HITS}:1|c`], udp: [] },
    set: { tcp: [], udp: [] },
  }),
  STATS_FLUSH_INTERVAL: { sees: "statistics sent sooner", run: sendsSooner },
  EXTRA_TAGS: differs("tags on every statistic", {
    changed: { EXTRA_TAGS: "zone:a.b,env:prod" },
    unset: { tcp: [`${HITS}:1|c`], udp: [] },
    set: { tcp: [`${HITS}.__env=prod.__zone=a_b:1|c`], udp: [] },
  }),
  USE_PUSH_STATS: { sees: "statistics on standard output in place of a receiver", run: prints },
  PUSH_STATS_HOST: { sees: "statistics sent to another host", run: sendsToOtherHost },
  PUSH_STATS_PORT: { sees: "statistics sent to another port", run: sendsToOtherPort },
  PUSH_STATS_PROTOCOL: differs("statistics sent over UDP", {
    changed: { PUSH_STATS_PROTOCOL: "udp" },
    unset: { tcp: [`${HITS}:1|c`], udp: [] },
    set: NOT_REWRITTEN,
  }),
  USE_TAGGED_PUSH_STATS: differs("statistics sent with tags", {
    env: { EXTRA_TAGS: "env:prod" },
    changed: { USE_TAGGED_PUSH_STATS: "true" },
    unset: { tcp: [`${HITS}.__env=prod:1|c`], udp: [] },
    set: { tcp: [], udp: [`${HITS}:1|c|#env:prod`] },
  }),
  TAGGED_PUSH_STATS_MOGRIFIERS: differs("statistics rewritten", {
    env: MOGRIFIER,
    changed: { TAGGED_PUSH_STATS_MOGRIFIERS: "RULES" },
    unset: NOT_REWRITTEN,
    set: { tcp: [], udp: ["hits.shop:1|c"] },
  }),
  USE_TAGGED_PUSH_STATS_MOGRIFIERS: differs("statistics rewritten", {
    env: MOGRIFIER,
    changed: { USE_TAGGED_PUSH_STATS_MOGRIFIERS: "RULES" },
    unset: NOT_REWRITTEN,
    set: { tcp: [], udp: ["hits.shop:1|c"] },
  }),
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": differs("other statistics rewritten", {
    env: { ...LISTED, [`${FAMILY}_PATTERN`]: "^nothing$" },
    changed: { [`${FAMILY}_PATTERN`]: "^.*\\.(total_hits)$" },
    unset: NOT_REWRITTEN,
    set: { tcp: [], udp: ["hits.total_hits:1|c"] },
  }),
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": differs("statistics rewritten to another name", {
    env: LISTED,
    changed: { [`${FAMILY}_NAME`]: "shop.hits.$2" },
    unset: { tcp: [], udp: ["hits.shop:1|c"] },
    set: { tcp: [], udp: ["shop.hits.open:1|c"] },
  }),
  "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": differs("tags made of groups of the pattern", {
    env: LISTED,
    changed: { [`${FAMILY}_TAGS`]: "domain:$1,rule:$2" },
    unset: { tcp: [], udp: ["hits.shop:1|c"] },
    set: { tcp: [], udp: ["hits.shop:1|c|#domain:shop,rule:open"] },
  }),
};

/** What came of the hits of one rule. */
interface Received {
  readonly tcp: readonly string[];
  readonly udp: readonly string[];
}

interface Difference {
  /** Settings that both services have. */
  readonly env?: Env;
  readonly changed: Env;
  readonly unset: Received;
  readonly set: Received;
}

function differs(sees: string, { env = {}, changed, unset, set }: Difference): SettingCase {
  const run = async () => {
    const without = await received({ ...SENT, ...env });
    assertEquals([without, await received({ ...SENT, ...env, ...changed })], [unset, set]);
  };
  return { sees, run };
}

/** Runs a service for one hit; what it sends until its end goes to a receiver that takes both protocols. */
async function received(env: Env, host = "127.0.0.1"): Promise<Received> {
  await using tcp = await TcpReceiver.start({ host });
  await using udp = await UdpReceiver.start({ host, port: tcp.port });
  await hitOnce({ ...env, PUSH_STATS_PORT: `${tcp.port}` });
  await Promise.all([tcp.settle(), udp.settle()]);
  return { tcp: hitsAmong(tcp.lines), udp: hitsAmong(udp.lines) };
}

/** What was counted goes out at the end of the service, for which there are short limits. */
async function hitOnce(env: Env): Promise<void> {
  await using service = await ServeFixture.start({ env, rules: SHOP, clock: SLOW_NOON });
  assertEquals((await service.ask(shopRequest("open=a"))).status, 200);
}

function hitsAmong(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line.startsWith(HITS) || /(?:^|\.)hits\./.test(line));
}

async function sendsSooner(): Promise<void> {
  const seen: number[] = [];
  for (const STATS_FLUSH_INTERVAL of ["", "20ms"]) {
    await using tcp = await TcpReceiver.start();
    const env = { ...SENT, PUSH_STATS_PORT: `${tcp.port}`, STATS_FLUSH_INTERVAL };
    await using service = await ServeFixture.start({ env, rules: SHOP, clock: NOON });
    await service.ask(shopRequest("open=a"));
    if (STATS_FLUSH_INTERVAL !== "") await until("the statistics", () => hitsAmong(tcp.lines).length > 0);
    else await new Promise((resolve) => setTimeout(resolve, 300));
    seen.push(hitsAmong(tcp.lines).length);
  }
  assertEquals(seen, [0, 1]);
}

async function prints(): Promise<void> {
  await using tcp = await TcpReceiver.start();
  const seen = [];
  for (const USE_PUSH_STATS of ["", "false"]) {
    const own = { PUSH_STATS_PORT: `${tcp.port}`, STATS_FLUSH_INTERVAL: "100ms" };
    const env = { ...SENT, ...own, USE_PUSH_STATS, EXTRA_TAGS: "env:prod" };
    await using weir = await startWeir({ env, rules: SHOP });
    const body = JSON.stringify(shopRequest("open=a"));
    await (await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body })).body?.cancel();
    const linesOf = () =>
      weir.stdoutLines.map((line) => JSON.parse(line)).filter(({ name }) => name === HITS);
    await until("the statistic", () => linesOf().length + hitsAmong(tcp.lines).length > 0);
    await weir.stop();
    await tcp.settle();
    const printed = linesOf();
    seen.push(
      printed.map(({ type, value, tags }) => ({ type, value, tags })),
      hitsAmong(tcp.lines.splice(0)),
    );
  }
  const line = { type: "counter", value: 1, tags: { env: "prod" } };
  assertEquals(seen, [[], [`${HITS}.__env=prod:1|c`], [line], []]);
}

async function sendsToOtherHost(): Promise<void> {
  const seen = [];
  for (
    const [PUSH_STATS_HOST, host] of [["", "127.0.0.1"], ["", OTHER_HOST], [OTHER_HOST, OTHER_HOST]] as const
  ) {
    seen.push((await received({ ...SENT, PUSH_STATS_HOST }, host)).tcp);
  }
  assertEquals(seen, [[`${HITS}:1|c`], [], [`${HITS}:1|c`]]);
}

async function sendsToOtherPort(): Promise<void> {
  await using first = await TcpReceiver.start();
  await using second = await TcpReceiver.start();
  for (const { port } of [first, second, second]) await hitOnce({ ...SENT, PUSH_STATS_PORT: `${port}` });
  await Promise.all([first.settle(), second.settle()]);
  assertEquals([first, second].map(({ lines }) => hitsAmong(lines).length), [1, 2]);
}
