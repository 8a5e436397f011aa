import { assertEquals, assertMatch } from "#assert";
import net from "node:net";
import { pushOutage } from "../../../src/stats/sinks.ts";
import { StatsdTcp } from "../../../src/stats/statsd_tcp.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { eventually, until } from "../../harness/until.ts";
import { TcpReceiver, warningLog } from "../../harness/push_receivers.ts";

/** Pauses after failed attempts where chance is in the middle. */
const PAUSES_MS = [750, 1_500, 3_000, 6_000];
const STEADY_MS = 1_000;
const WRITE_MS = 30_000;
const CLOSE_MS = 500;

/** Waits until something waits for so long. */
async function reached(clock: FakeClock, delayMs: number): Promise<void> {
  await until(`a wait of ${delayMs} ms`, () => clock.waits.at(-1) === delayMs);
}

interface PushBed {
  readonly push: StatsdTcp;
  readonly warnings: readonly string[];
  readonly clock: FakeClock;
}

/** Opens a carrier to a port of this machine, and closes it afterwards. */
async function withPush(
  port: number,
  work: (bed: PushBed) => Promise<void>,
  host = "127.0.0.1",
): Promise<void> {
  const { logger, warnings } = warningLog();
  const clock = new FakeClock();
  const outage = pushOutage(`${host}:${port}`, { clock, logger });
  const push = new StatsdTcp({ host, port, clock, random: () => 0.5, outage });
  try {
    await work({ push, warnings, clock });
  } finally {
    const closed = push.close();
    // After a failure its receiver may read nothing, and the clock stands still.
    clock.advance(CLOSE_MS);
    await closed;
  }
}

Deno.test("push tcp: lines arrive, the last ones before the end too", async () => {
  await using receiver = await TcpReceiver.start();
  await withPush(receiver.port, async ({ push, warnings }) => {
    await until("the connection", () => push.usable);
    await push.send(["a:1|c", "b:0|g\nb:-1|g"]);
    await push.send(["é:2|c"]);
    await push.close();
    await until("the lines", () => receiver.lines.length === 4);
    await eventually([
      ["a:1|c", "b:0|g", "b:-1|g", "é:2|c"],
      1,
      [],
      false,
      0,
    ], () => [receiver.lines, receiver.accepted, warnings, push.usable, push.linesLost]);
  }, "localhost");
});

Deno.test("push tcp: an outage is logged once and its end once, whatever number of attempts it takes", async () => {
  await using receiver = await TcpReceiver.start();
  await withPush(receiver.port, async ({ push, warnings, clock }) => {
    await until("the connection", () => push.usable);
    await receiver.stop();
    await until("the loss", () => !push.usable);
    for (const pauseMs of PAUSES_MS.slice(0, 3)) {
      await reached(clock, pauseMs);
      clock.advance(pauseMs);
    }
    await reached(clock, 6_000);
    const during = [...warnings];
    await receiver.restart();
    clock.advance(6_000);
    await until("the connection", () => push.usable);
    clock.advance(STEADY_MS - 1);
    const early = warnings.length;
    clock.advance(1);
    await push.send(["a:1|c"]);
    await until("the line", () => receiver.lines.length === 1);
    const address = `127.0.0.1:${receiver.port}`;
    await eventually([
      [`Cannot push statistics; retrying receiver=${address} reason=it closed the connection`],
      1,
      [...during, `Pushing statistics again receiver=${address}`],
    ], () => [during, early, warnings]);
  });
});

Deno.test("push tcp: a receiver that is not there costs one line of the log, and the end no time", async () => {
  await withPush(freePort(), async ({ push, warnings, clock }) => {
    for (const pauseMs of PAUSES_MS.slice(0, 2)) {
      await reached(clock, pauseMs);
      clock.advance(pauseMs);
    }
    await reached(clock, 3_000);
    // The clock stands still, so a wait for it would never end.
    await push.prepare(true);
    await push.close();
    assertMatch(
      warnings.join("\n"),
      /^Cannot push statistics; retrying receiver=127\.0\.0\.1:\d+ reason=.*ECONNREFUSED.*$/,
    );
    assertEquals([push.usable, clock.waiting], [false, 0]);
  });
});

Deno.test("push tcp: the last flush connects immediately during a backoff", async () => {
  await using receiver = await TcpReceiver.start();
  await receiver.stop();
  await withPush(receiver.port, async ({ push, clock }) => {
    await reached(clock, 750);
    await receiver.restart();
    await push.prepare(true);
    await until("the connection to be taken", () => receiver.accepted > 0);
    assertEquals([push.usable, receiver.accepted], [true, 1]);
  });
});

/** A megabyte of lines. */
const SLICE = Array.from({ length: 1_000 }, (_, index) => `${index}.${"x".repeat(1_000)}:1|c`);

/** Sends slices until one is lost, or this many; answers how many were taken so far. */
function sendSlices(
  push: StatsdTcp,
  most = Infinity,
): { readonly taken: () => number; readonly sent: Promise<void> } {
  let taken = 0;
  const send = async () => {
    for (; taken < most && push.linesLost === 0; taken++) await push.send(SLICE);
  };
  return { taken: () => taken, sent: send() };
}

Deno.test("push tcp: a slow receiver is waited for", async () => {
  await using receiver = await TcpReceiver.start({ isReading: false });
  await withPush(receiver.port, async ({ push, warnings, clock }) => {
    await until("the connection", () => push.usable);
    // More than the system buffers: the sender waits, and is not in anybody's way.
    const { taken, sent } = sendSlices(push, 40);
    // Earlier, the test would prove less, and not fail.
    let [before, times] = [0, 0];
    await until("the sender to wait", () => {
      times = taken() === before ? times + 1 : 0;
      before = taken();
      return times === 10;
    });
    clock.advance(WRITE_MS - 1);
    assertEquals([taken() < 40, push.usable], [true, true]);
    receiver.read();
    await until("all lines", () => receiver.lines.length === 40_000);
    await sent;
    assertEquals([taken(), push.linesLost, warnings], [40, 0, []]);
  });
});

Deno.test("push tcp: a receiver that takes nothing for long is given up, and what it was given is lost", async () => {
  await using receiver = await TcpReceiver.start({ isReading: false });
  await withPush(receiver.port, async ({ push, warnings, clock }) => {
    await until("the connection", () => push.usable);
    const { sent } = sendSlices(push);
    await until("it to be given up", () => {
      // What the system buffers is taken immediately.
      clock.advance(WRITE_MS / 2);
      return push.linesLost > 0;
    });
    await sent;
    assertMatch(warnings[0] ?? "", / reason=it took nothing for 30000 ms$/);
    assertEquals(push.linesLost, 1_000);
  });
});

Deno.test("push tcp: connections that end immediately are retried with a backoff, and logged once", async () => {
  let knocks = 0;
  const door = net.createServer((socket) => {
    knocks++;
    socket.on("error", () => {});
    socket.destroy();
  });
  const port = await new Promise<number>((resolve) => {
    door.listen(0, "127.0.0.1", () => resolve((door.address() as net.AddressInfo).port));
  });
  try {
    await withPush(port, async ({ warnings, clock }) => {
      for (const [index, pauseMs] of PAUSES_MS.entries()) {
        await reached(clock, pauseMs);
        assertEquals([knocks, warnings.length], [index + 1, 1]);
        clock.advance(pauseMs);
      }
    });
  } finally {
    await new Promise((resolve) => door.close(resolve));
  }
});
