import { assertEquals, assertMatch } from "@std/assert";
import net from "node:net";
import type { CounterCache } from "../../../src/ratelimit/counter_cache.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { withMc } from "../../harness/mc_bed.ts";
import { turn, watchCall } from "./watched_call.ts";

/** By clocks that only these tests move. */
const TIMEOUT_MS = 10_000;
/** After so long everything that failed is tried again. */
const RETRY_MS = 2_000;
const USUAL = { timeoutMs: TIMEOUT_MS, maxIdleConnections: 1 };

/** Answers the lines that one connection sends; what it answers to the greeting comes first. */
type Script = (line: string, socket: net.Socket) => void;

function greet(line: string, socket: net.Socket): boolean {
  if (line !== "version") return false;
  socket.write("VERSION 1.6.0\r\n");
  return true;
}

/** Runs with a server that does what a script says. */
async function withServer(script: Script, run: (port: number) => Promise<void>): Promise<void> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      for (const line of bytes.toString("latin1").split("\r\n").slice(0, -1)) script(line, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  try {
    await run(typeof bound === "object" && bound !== null ? bound.port : 0);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

/** What the first call gets of a server like that. */
interface BadServer {
  readonly name: string;
  readonly script: Script;
  readonly message: RegExp;
  /** It does not answer, so that calls wait for the deadline; nobody has to else. */
  readonly silent?: boolean;
  /** Connections can be used at first. */
  readonly greets?: boolean;
}

const BAD_SERVERS: readonly BadServer[] = [
  {
    name: "takes connections and never says a word",
    script: () => {},
    message: /: (?:no connection: )?no connection within 10000 ms$/,
    silent: true,
  },
  {
    name: "greets and never answers",
    script: greet,
    message: /: no answer within 10000 ms$/,
    silent: true,
    greets: true,
  },
  {
    name: "speaks another protocol",
    script: (_, socket) => void socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"),
    message: /: (?:no connection: )?it sent "HTTP\/1.1 400 Bad Request", which is not a reply$/,
  },
  {
    name: "has too many connections",
    script: (_, socket) => void socket.end("ERROR Too many open connections\r\n"),
    message: /: (?:no connection: )?it greets with "ERROR Too many open connections"$/,
  },
  {
    name: "greets and then answers garbage",
    script: (line, socket) => void (greet(line, socket) || socket.write("\x16\x03\x01\r\n")),
    message: /: it sent "\\u0016\\u0003\\u0001", which is not a reply$/,
    greets: true,
  },
  {
    name: "closes in the middle of an answer",
    script: (line, socket) => void (greet(line, socket) || line === "0" || socket.end("NOT_STORED\r\n1")),
    message: /: it closed the connection$/,
    greets: true,
  },
  {
    name: "resets instead of answering",
    script: (line, socket) => void (greet(line, socket) || socket.resetAndDestroy()),
    message: /: (?:read ECONNRESET|it closed the connection)$/,
    greets: true,
  },
  {
    name: "stops in the middle of an answer",
    script: (line, socket) => void (greet(line, socket) || line === "0" || socket.write("1")),
    message: /: no answer within 10000 ms$/,
    silent: true,
    greets: true,
  },
  {
    name: "answers what was not asked",
    script: (line, socket) => void (greet(line, socket) || socket.write("END\r\n")),
    message: /: it answers "END"$/,
    greets: true,
  },
  {
    name: "does not know the commands",
    script: (line, socket) => void (greet(line, socket) || socket.write("ERROR\r\n")),
    message: /: it answers "ERROR"$/,
    greets: true,
  },
];

for (const { name, script, message, silent = false, greets = false } of BAD_SERVERS) {
  Deno.test(`mc node: a server that ${name} fails every call in time`, async () => {
    const clock = new FakeClock();
    await withServer(script, async (port) => {
      await withMc([port], { ...USUAL, clock }, async (cache) => {
        for (let round = 0; round < 8; round++) {
          if (greets) await until("a connection", () => cache.connected, { intervalMs: 1 });
          const outcomes = watchCall(cache.add([hit(), hit()]), clock);
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
  });
}

/** Makes a call that has no answer when its time is over, once it was asked for. */
async function failsInTime(
  cache: CounterCache,
  clock: FakeClock,
  isAsked: () => boolean = () => true,
): Promise<void> {
  const outcomes = watchCall(Promise.resolve(cache.add([hit()])), clock);
  await turn();
  await until("the call to be asked for", isAsked);
  clock.advance(TIMEOUT_MS);
  await turn();
  assertEquals(outcomes.map(({ ms, answer }) => [ms, answer]), [[TIMEOUT_MS, undefined]]);
}

Deno.test("mc node: after failures in a row nothing is sent for a while, and then one attempt", async () => {
  let asked = 0;
  let isWell = false;
  const script: Script = (line, socket) => {
    if (greet(line, socket) || line === "0") return;
    asked++;
    if (isWell) socket.write(line.startsWith("add") ? "STORED\r\n" : "7\r\n");
  };
  await withServer(script, async (port) => {
    const clock = new FakeClock();
    await withMc([port], { ...USUAL, maxIdleConnections: 2, clock }, async (cache) => {
      await cache.ready;
      for (let call = 0; call < 5; call++) {
        await until("the connection", () => cache.connected, { intervalMs: 1 });
        await failsInTime(cache, clock);
      }
      const { gauges, counters } = cache.metrics;
      assertEquals([gauges["breaker_open"]?.(), counters["breaker_opened"]?.(), counters["timeouts"]?.()], [
        1,
        1,
        5,
      ]);
      await until("the connection", () => cache.connected, { intervalMs: 1 });
      const before = asked;
      const outcomes = watchCall(cache.add([hit()]), clock);
      await turn();
      assertMatch(
        outcomes[0]?.message ?? "nothing yet",
        /: it failed again and again, last: no answer within 10000 ms$/,
      );
      assertEquals(asked, before);
      isWell = true;
      await until("the attempt", async () => {
        clock.advance(100);
        return (await cache.add([hit()]))[0] === 7;
      }, { intervalMs: 1 });
      assertEquals([gauges["breaker_open"]?.(), await cache.add([hit()])], [0, [7]]);
    });
  });
});

Deno.test("mc node: answers that come too late are taken for nobody else's", async () => {
  let late: (() => void) | undefined;
  let value = 0;
  const script: Script = (line, socket) => {
    if (greet(line, socket) || line === "0") return;
    const answer = line.startsWith("add") ? "STORED\r\n" : `${++value}\r\n`;
    const before = late;
    if (value > 1 || before === undefined && value === 1) return void socket.write(answer);
    late = () => {
      before?.();
      socket.write(answer);
    };
  };
  await withServer(script, async (port) => {
    const clock = new FakeClock();
    await withMc([port], { ...USUAL, clock }, async (cache) => {
      await cache.ready;
      await failsInTime(cache, clock, () => value === 1);
      late?.();
      late = undefined;
      await until("the new connection", () => cache.connected);
      assertEquals(await until("an answer", () => cache.add([hit()]).catch(() => undefined)), [2]);
    });
  });
});

Deno.test("mc node: closing ends calls, connections and timers", async () => {
  await withServer(greet, async (port) => {
    await withMc([port], USUAL, async (cache) => {
      await cache.ready;
      const ends = Promise.allSettled([cache.add([hit()]), cache.remove(["key"])]);
      await cache.close();
      const states = (await ends).map((end) => end.status === "rejected" ? end.reason.message : "answered");
      const text = `Cannot query memcached-style cache "127.0.0.1:${port}": it is closed`;
      assertEquals([states, cache.connected], [[text, text], false]);
    });
  });
});

/** A clock whose time of the day is set back by an hour each time that it is looked at. */
function backwardClock(of: FakeClock): Clock {
  let hours = 0;
  return FakeClock.ofMachine({ of, now: () => of.now() - 3_600_000 * hours++ });
}

Deno.test("mc node: a call ends in time also when the clock is set back", async () => {
  await withServer(greet, async (port) => {
    const clock = new FakeClock();
    await withMc([port], { ...USUAL, clock: backwardClock(clock) }, async (cache) => {
      await cache.ready;
      const messages: string[] = [];
      cache.add([hit()]).catch(({ message }: Error) => messages.push(message));
      await turn();
      clock.advance(TIMEOUT_MS - 1);
      await turn();
      assertEquals(messages, []);
      clock.advance(1);
      await turn();
      assertMatch(messages.join(), /: no answer within 10000 ms$/);
    });
  });
});

Deno.test("mc node: a further connection is tried again also when the clock was set back", async () => {
  let greeted = 0;
  const script: Script = (line, socket) => {
    if (line !== "version") return;
    if (++greeted === 2) socket.destroy();
    else greet(line, socket);
  };
  const clock = new FakeClock();
  await withServer(script, async (port) => {
    await withMc(
      [port],
      { timeoutMs: 600_000, maxIdleConnections: 2, clock: backwardClock(clock) },
      async (cache) => {
        await cache.ready;
        const calls: Promise<unknown>[] = [];
        // Calls that are not answered keep the first connection busy.
        const connections = (wanted: number) => {
          calls.push(cache.add([hit()]).catch(() => {}));
          return greeted >= wanted;
        };
        await until("the second one", () => connections(2));
        await until("the third one", () => {
          clock.advance(500);
          return connections(3);
        });
        await cache.close();
        await Promise.all(calls);
      },
    );
  });
});
