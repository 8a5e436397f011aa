import { assertEquals } from "#assert";
import type { Clock } from "../../../src/base/clock.ts";
import { type Environment, readSettings } from "../../../src/settings/read_settings.ts";
import { startSinks } from "../../../src/stats/sinks.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { patientClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { countsOf, TcpReceiver, UdpReceiver, warningLog } from "../../harness/push_receivers.ts";

/** Pauses before a receiver is tried again, and the time after which it is taken for one that is there. */
const PAUSES_MS = [750, 1_000, 1_500, 3_000, 6_000, 12_000, 22_500];
/** Pauses are short, so that tests are; limits are long, so that none strikes on a slow machine. */
const CLOCK: Clock = {
  now: () => patientClock.now(),
  elapsed: () => patientClock.elapsed(),
  after: (delayMs, run) => patientClock.after(PAUSES_MS.includes(delayMs) ? delayMs / 50 : delayMs, run),
};

/** Starts the sinks of this environment, with a flush every 20 ms. */
function start(env: Environment, store = new StatsStore(100)) {
  const { settings } = readSettings({ BACKEND_TYPE: "memory", STATS_FLUSH_INTERVAL: "20ms", ...env });
  const { logger, warnings } = warningLog();
  const written: string[] = [];
  const stdout = {
    write(bytes: Uint8Array): Promise<number> {
      written.push(...new TextDecoder().decode(bytes).trimEnd().split("\n"));
      return Promise.resolve(bytes.length);
    },
  };
  const sinks = startSinks(settings, store, { clock: CLOCK, random: () => 0.5, logger, stdout });
  return { store, sinks, written, warnings };
}

const HITS = "ratelimit.service.rate_limit.d.k.total_hits";

Deno.test("sinks: several concurrently, each with its own deltas, the last ones at the end", async () => {
  await using tcp = await TcpReceiver.start();
  await using udp = await UdpReceiver.start();
  const store = new StatsStore(100);
  const counters = store.rule("d.k");
  const env = { PUSH_STATS_HOST: "127.0.0.1", EXTRA_TAGS: "env:prod" };
  const push = start({ ...env, PUSH_STATS_PORT: `${tcp.port}` }, store);
  const tagged = start({ ...env, PUSH_STATS_PORT: `${udp.port}`, USE_TAGGED_PUSH_STATS: "true" }, store);
  const stdout = start({ EXTRA_TAGS: "env:prod", USE_PUSH_STATS: "false" }, store);
  counters.totalHits += 3;
  await until(
    "the first deltas",
    () => tcp.lines.length > 0 && udp.lines.length > 0 && stdout.written.length > 0,
  );
  counters.totalHits += 4;
  await Promise.all([push, tagged, stdout].map(({ sinks }) => sinks.close()));
  await until(
    "the last deltas",
    () => countsOf(tcp.lines)[`${HITS}.__env=prod`] === 7 && countsOf(udp.lines)[HITS] === 7,
  );
  const printed = stdout.written.map((line) => JSON.parse(line)).map(({ name, type, value, tags }) => {
    return { name, type, value, tags };
  });
  const expected = (value: number) => ({ name: HITS, type: "counter", value, tags: { env: "prod" } });
  assertEquals(printed, [expected(3), expected(4)]);
  assertEquals(udp.lines.every((line) => line.endsWith("|#env:prod")), true);
});

Deno.test("sinks: counts of an outage arrive when it is over, each once", async () => {
  await using tcp = await TcpReceiver.start();
  const { store, sinks, warnings } = start({ PUSH_STATS_HOST: "127.0.0.1", PUSH_STATS_PORT: `${tcp.port}` });
  const counters = store.rule("d.k");
  counters.totalHits += 1;
  await until("the first count", () => countsOf(tcp.lines)[HITS] === 1);
  await tcp.stop();
  await until("the outage", () => warnings.length > 0);
  counters.totalHits += 50;
  await tcp.restart();
  await until("the other counts", () => countsOf(tcp.lines)[HITS] === 51);
  await until("the end of the outage", () => warnings.length > 1);
  await sinks.close();
  assertEquals([countsOf(tcp.lines), warnings.length], [{ [HITS]: 51 }, 2]);
});
