import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import net from "node:net";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { hit } from "../contract/counter_cache_contract.ts";
import { until } from "../support/until.ts";
import { withMc } from "./mc_bed.ts";

const TIMEOUT_MS = 300;
const TOLERANCE_MS = 50;
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

/** What each call gets of a server like that, and how long the first one may take at most. */
interface BadServer {
  readonly name: string;
  readonly script: Script;
  readonly message: RegExp;
  /** It answers, so nobody has to wait for the deadline. */
  readonly atOnce?: boolean;
}

const BAD_SERVERS: readonly BadServer[] = [
  {
    name: "takes connections and never says a word",
    script: () => {},
    message: /: (?:no connection: )?no connection within 300 ms$/,
  },
  {
    name: "greets and never answers",
    script: greet,
    message: /: no answer within 300 ms$/,
  },
  {
    name: "speaks another protocol",
    script: (_, socket) => void socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"),
    message: /: (?:no connection: )?it sent "HTTP\/1.1 400 Bad Request", which is no answer$/,
    atOnce: true,
  },
  {
    name: "has too many connections",
    script: (_, socket) => void socket.end("ERROR Too many open connections\r\n"),
    message: /: (?:no connection: )?it greets with "ERROR Too many open connections"$/,
    atOnce: true,
  },
  {
    name: "greets and then answers garbage",
    script: (line, socket) => void (greet(line, socket) || socket.write("\x16\x03\x01\r\n")),
    message: /: it sent "\\u0016\\u0003\\u0001", which is no answer$/,
    atOnce: true,
  },
  {
    name: "closes in the middle of an answer",
    script: (line, socket) => void (greet(line, socket) || line === "0" || socket.end("NOT_STORED\r\n1")),
    message: /: it closed the connection$/,
    atOnce: true,
  },
  {
    name: "resets instead of answering",
    script: (line, socket) => void (greet(line, socket) || socket.resetAndDestroy()),
    message: /: (?:read ECONNRESET|it closed the connection)$/,
    atOnce: true,
  },
  {
    name: "stops in the middle of an answer",
    script: (line, socket) => void (greet(line, socket) || line === "0" || socket.write("1")),
    message: /: no answer within 300 ms$/,
  },
  {
    name: "answers what was not asked",
    script: (line, socket) => void (greet(line, socket) || socket.write("END\r\n")),
    message: /: it answers "END"$/,
    atOnce: true,
  },
  {
    name: "does not know the commands",
    script: (line, socket) => void (greet(line, socket) || socket.write("ERROR\r\n")),
    message: /: it answers "ERROR"$/,
    atOnce: true,
  },
];

for (const { name, script, message, atOnce = false } of BAD_SERVERS) {
  Deno.test(`mc node: a server that ${name} fails every call in time`, async () => {
    await withServer(script, async (port) => {
      await withMc([port], USUAL, async (cache) => {
        const longest: number[] = [];
        for (let round = 0; round < 8; round++) {
          const start = performance.now();
          const error = await assertRejects(() => cache.add([hit(), hit()]));
          longest.push(performance.now() - start);
          assertEquals([
            error.name,
            error.message.startsWith(`Cannot ask memcached-style cache "127.0.0.1:${port}"`),
          ], [
            "CacheError",
            true,
          ]);
          if (round === 0) assertMatch(error.message, message);
        }
        assertEquals(
          Math.max(...longest) < (atOnce ? TIMEOUT_MS - TOLERANCE_MS : TIMEOUT_MS + TOLERANCE_MS),
          true,
        );
      });
    });
  });
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
    await withMc([port], { ...USUAL, timeoutMs: 50, maxIdleConnections: 2 }, async (cache) => {
      await cache.ready;
      for (let call = 0; call < 5; call++) {
        await until("the connection", () => cache.connected, { intervalMs: 1 });
        await assertRejects(() => cache.add([hit()]));
      }
      const { gauges, counters } = cache.figures;
      assertEquals([gauges["breaker_open"]?.(), counters["breaker_opened"]?.(), counters["timeouts"]?.()], [
        1,
        1,
        5,
      ]);
      await until("the connection", () => cache.connected, { intervalMs: 1 });
      const before = asked;
      const start = performance.now();
      const error = await assertRejects(() => cache.add([hit()]));
      assertMatch(error.message, /: it failed again and again, last: no answer within 50 ms$/);
      assertEquals([asked - before, performance.now() - start < 20], [0, true]);
      isWell = true;
      await until("the attempt", async () => (await cache.add([hit()]))[0] === 7, { intervalMs: 5 });
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
    await withMc([port], { ...USUAL, timeoutMs: 100 }, async (cache) => {
      await cache.ready;
      await assertRejects(() => cache.add([hit()]));
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
      const text = `Cannot ask memcached-style cache "127.0.0.1:${port}": it is closed`;
      assertEquals([states, cache.connected], [[text, text], false]);
    });
  });
});

/** The clock of the machine, set back by an hour each time that it is looked at. */
function backwardClock(): Clock {
  let hours = 0;
  return { ...systemClock, now: () => Date.now() - 3_600_000 * hours++ };
}

Deno.test("mc node: a call ends in time also when the clock is set back", async () => {
  await withServer(greet, async (port) => {
    await withMc([port], { ...USUAL, timeoutMs: 50, clock: backwardClock() }, async (cache) => {
      await cache.ready;
      const failing = assertRejects(() => cache.add([hit()]));
      let isOver = false;
      failing.finally(() => isOver = true);
      await until("the call to fail", () => isOver, { deadlineMs: 1_000 });
      assertMatch((await failing).message, /: no answer within 50 ms$/);
    });
  });
});

Deno.test("mc node: a further connection is tried again also when the clock was set back", async () => {
  let greeted = 0;
  let passedMs = 0;
  const script: Script = (line, socket) => {
    if (line !== "version") return;
    if (++greeted === 2) socket.destroy();
    else greet(line, socket);
  };
  const clock = { ...backwardClock(), elapsed: () => systemClock.elapsed() + passedMs };
  await withServer(script, async (port) => {
    await withMc([port], { timeoutMs: 600_000, maxIdleConnections: 2, clock }, async (cache) => {
      await cache.ready;
      const calls: Promise<unknown>[] = [];
      // Calls that are not answered keep the first connection busy.
      const connections = (wanted: number) => {
        calls.push(cache.add([hit()]).catch(() => {}));
        return greeted === wanted;
      };
      await until("the second one", () => connections(2));
      await until("the third one", () => {
        passedMs += 500;
        return connections(3);
      }, { deadlineMs: 1_000 });
      await cache.close();
      await Promise.all(calls);
    });
  });
});
