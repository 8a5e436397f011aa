import { assertEquals, assertMatch } from "#assert";
import type { McCache } from "../../../src/cache/mc/cache.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { eventually, until } from "../../harness/until.ts";
import { type McOptions, withMc } from "../../harness/mc_bed.ts";
import { type McScript, startScriptedMc } from "../../harness/scripted_cache.ts";
import { turn, watchCall } from "./watched_call.ts";
import { takeCounts } from "../../harness/take.ts";

/** By clocks that only these tests move. */
const TIMEOUT_MS = 10_000;
/** After so long everything that failed is tried again. */
const RETRY_MS = 2_000;
const USUAL = { timeoutMs: TIMEOUT_MS, maxIdleConnections: 1 };

/** Outcome of the first call to a server like that. */
interface BadServer {
  readonly name: string;
  readonly script?: McScript;
  /** Answer to the greeting; connections can be used at first where it is absent. */
  readonly version?: McScript;
  readonly message: RegExp;
  /** It does not answer, so that calls wait for the deadline. */
  readonly silent?: boolean;
}

const BAD_SERVERS: readonly BadServer[] = [
  {
    name: "takes connections and never says a word",
    version: () => undefined,
    message: /: (?:no connection: )?no (?:connection|answer) within 10000 ms$/,
    silent: true,
  },
  {
    name: "greets and never answers",
    message: /: no answer within 10000 ms$/,
    silent: true,
  },
  {
    name: "speaks another protocol",
    version: () => "HTTP/1.1 400 Bad Request\r\n\r\n",
    message: /: (?:no connection: )?it sent "HTTP\/1.1 400 Bad Request", which is not a reply$/,
  },
  {
    name: "has too many connections",
    version: (_, socket) => void socket.end("ERROR Too many open connections\r\n"),
    message: /: (?:no connection: )?it greets with "ERROR Too many open connections"$/,
  },
  {
    name: "greets and then answers garbage",
    script: () => "\x16\x03\x01\r\n",
    message: /: it sent "\\u0016\\u0003\\u0001", which is not a reply$/,
  },
  {
    name: "closes in the middle of an answer",
    script: (line, socket) => void (line === "0" || socket.end("NOT_STORED\r\n1")),
    message: /: the connection was closed$/,
  },
  {
    name: "resets instead of answering",
    script: (_, socket) => void socket.resetAndDestroy(),
    message: /: (?:read ECONNRESET|the connection was closed)$/,
  },
  {
    name: "stops in the middle of an answer",
    script: (line) => line === "0" ? undefined : "1",
    message: /: no answer within 10000 ms$/,
    silent: true,
  },
  {
    name: "answers what was not asked",
    script: () => "END\r\n",
    message: /: it answers "END"$/,
  },
  {
    name: "does not know the commands",
    script: () => "ERROR\r\n",
    message: /: it answers "ERROR"$/,
  },
];

const silence: McScript = () => undefined;

/** Runs with a cache whose only server does what a script says. */
async function withServer(
  { script = silence, version }: Pick<BadServer, "script" | "version">,
  options: McOptions,
  run: (cache: McCache, port: number) => Promise<void>,
): Promise<void> {
  await using server = await startScriptedMc(script, version);
  await withMc([server.port], { ...USUAL, ...options }, (cache) => run(cache, server.port));
}

for (const { name, message, silent = false, ...scripts } of BAD_SERVERS) {
  Deno.test(`mc node: a server that ${name} fails every call in time`, async () => {
    const clock = new FakeClock();
    await withServer(scripts, { clock }, async (cache, port) => {
      for (let round = 0; round < 8; round++) {
        if (scripts.version === undefined) await connected(cache);
        const outcomes = watchCall(takeCounts(cache, [hit(), hit()]), clock);
        await turn();
        if (silent) clock.advance(TIMEOUT_MS);
        await turn();
        // Without the clock: it stands still.
        if (!silent) await until("the call to fail", () => outcomes.length > 0, { intervalMs: 1 });
        const [{ message: text = "no failure", ms = -1 } = {}] = outcomes;
        assertMatch(text, new RegExp(`^Cannot query memcached-style cache "127.0.0.1:${port}"`));
        assertEquals(ms === 0 || silent && ms === TIMEOUT_MS, true, `${ms}`);
        if (round === 0) assertMatch(text, message);
        clock.advance(RETRY_MS);
      }
    });
  });
}

async function connected(cache: McCache): Promise<void> {
  await until("the connection", () => cache.connected, { intervalMs: 1 });
}

/** Makes a call that has no answer when its time is over, once it was asked for. */
async function failsInTime(
  cache: McCache,
  clock: FakeClock,
  isAsked: () => boolean = () => true,
): Promise<void> {
  const outcomes = watchCall(takeCounts(cache, [hit()]), clock);
  await turn();
  await until("the call to be asked for", isAsked);
  clock.advance(TIMEOUT_MS);
  await turn();
  assertEquals(outcomes.map(({ ms, answer }) => [ms, answer]), [[TIMEOUT_MS, undefined]]);
}

Deno.test("mc node: after failures in a row nothing is sent for a while, and then one attempt", async () => {
  let asked = 0;
  let isWell = false;
  const script: McScript = (line) => {
    if (line === "0") return undefined;
    asked++;
    return isWell ? line.startsWith("add") ? "STORED\r\n" : "7\r\n" : undefined;
  };
  const clock = new FakeClock();
  await withServer({ script }, { maxIdleConnections: 2, clock }, async (cache) => {
    await cache.ready;
    for (let call = 0; call < 5; call++) {
      await connected(cache);
      await failsInTime(cache, clock);
    }
    const { gauges, counters } = cache.metrics;
    const metrics = [gauges["breaker_open"]?.(), counters["breaker_opened"]?.(), counters["timeouts"]?.()];
    assertEquals(metrics, [1, 1, 5]);
    await connected(cache);
    const before = asked;
    const outcomes = watchCall(takeCounts(cache, [hit()]), clock);
    await turn();
    const text = outcomes[0]?.message ?? "nothing yet";
    assertMatch(text, /: it failed again and again, last: no answer within 10000 ms$/);
    assertEquals(asked, before);
    isWell = true;
    await until("the attempt", async () => {
      clock.advance(100);
      return (await takeCounts(cache, [hit()]))[0] === 7;
    }, { intervalMs: 1 });
    await eventually(0, () => gauges["breaker_open"]?.());
    assertEquals(await takeCounts(cache, [hit()]), [7]);
  });
});

Deno.test("mc node: answers that come too late answer no other call", async () => {
  let late: (() => void) | undefined;
  let value = 0;
  const script: McScript = (line, socket) => {
    if (line === "0") return undefined;
    const answer = line.startsWith("add") ? "STORED\r\n" : `${++value}\r\n`;
    const before = late;
    if (value > 1 || before === undefined && value === 1) return answer;
    late = () => {
      before?.();
      socket.write(answer);
    };
    return undefined;
  };
  const clock = new FakeClock();
  await withServer({ script }, { clock }, async (cache) => {
    await cache.ready;
    await failsInTime(cache, clock, () => value === 1);
    late?.();
    late = undefined;
    await connected(cache);
    assertEquals(await until("an answer", () => takeCounts(cache, [hit()]).catch(() => undefined)), [2]);
  });
});

Deno.test("mc node: closing ends calls, connections and timers", async () => {
  await withServer({}, {}, async (cache, port) => {
    await cache.ready;
    const ends = Promise.allSettled([takeCounts(cache, [hit()]), cache.remove(["key"])]);
    await cache.close();
    const states = (await ends).map((end) => end.status === "rejected" ? end.reason.message : "answered");
    const text = `Cannot query memcached-style cache "127.0.0.1:${port}": it is closed`;
    assertEquals([states, cache.connected], [[text, text], false]);
  });
});

/** A clock whose time of the day is set back by an hour each time that it is looked at. */
function backwardClock(of: FakeClock): Clock {
  let hours = 0;
  return FakeClock.ofMachine({ of, now: () => of.now() - 3_600_000 * hours++ });
}

Deno.test("mc node: a call ends in time also when the clock is set back", async () => {
  const clock = new FakeClock();
  await withServer({}, { clock: backwardClock(clock) }, async (cache) => {
    await cache.ready;
    const messages: string[] = [];
    takeCounts(cache, [hit()]).catch(({ message }: Error) => messages.push(message));
    await turn();
    clock.advance(TIMEOUT_MS - 1);
    await turn();
    assertEquals(messages, []);
    clock.advance(1);
    await turn();
    assertMatch(messages.join(), /: no answer within 10000 ms$/);
  });
});

Deno.test("mc node: a further connection is tried again also when the clock was set back", async () => {
  let greeted = 0;
  const version: McScript = (_, socket) => ++greeted === 2 ? void socket.destroy() : "VERSION 1.6.0\r\n";
  const clock = new FakeClock();
  const options = { timeoutMs: 600_000, maxIdleConnections: 2, clock: backwardClock(clock) };
  await withServer({ version }, options, async (cache) => {
    await cache.ready;
    const calls: Promise<unknown>[] = [];
    // Calls that are not answered keep the first connection busy.
    const connections = (wanted: number) => {
      calls.push(takeCounts(cache, [hit()]).catch(() => {}));
      return greeted >= wanted;
    };
    await until("the second one", () => connections(2));
    await until("the third one", () => {
      clock.advance(500);
      return connections(3);
    });
    await cache.close();
    await Promise.all(calls);
  });
});
