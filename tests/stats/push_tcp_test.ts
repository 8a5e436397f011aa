import { assertEquals, assertMatch } from "@std/assert";
import net from "node:net";
import { PushOutage } from "../../src/stats/push_outage.ts";
import { PushTcp } from "../../src/stats/push_tcp.ts";
import { freePort } from "../support/free_port.ts";
import { until } from "../support/until.ts";
import { HASTY, TcpReceiver, warningLog } from "./push_receivers.ts";

/** Opens a carrier to a port of this machine, and closes it afterwards. */
async function withPush(
  port: number,
  work: (push: PushTcp, warnings: readonly string[]) => Promise<void>,
  host = "127.0.0.1",
): Promise<void> {
  const { logger, warnings } = warningLog();
  const outage = new PushOutage(`${host}:${port}`, logger);
  const push = new PushTcp({ host, port, clock: HASTY, random: () => 0.5, outage });
  try {
    await work(push, warnings);
  } finally {
    await push.close();
  }
}

Deno.test("push tcp: lines arrive, the last ones before the end too", async () => {
  await using receiver = await TcpReceiver.start();
  await withPush(receiver.port, async (push, warnings) => {
    await until("the connection", () => push.usable);
    await push.send(["a:1|c", "b:0|g\nb:-1|g"]);
    await push.send(["é:2|c"]);
    await push.close();
    await until("the lines", () => receiver.lines.length === 4);
    assertEquals([receiver.lines, receiver.accepted, warnings, push.usable, push.linesLost], [
      ["a:1|c", "b:0|g", "b:-1|g", "é:2|c"],
      1,
      [],
      false,
      0,
    ]);
  }, "localhost");
});

Deno.test("push tcp: an outage is told once and its end once, whatever number of attempts it takes", async () => {
  await using receiver = await TcpReceiver.start();
  await withPush(receiver.port, async (push, warnings) => {
    await until("the connection", () => push.usable);
    await receiver.stop();
    await until("the loss", () => !push.usable);
    // The first pauses are 0.75, 1.5 and 3 seconds of a hasty clock.
    await new Promise((resolve) => setTimeout(resolve, 150));
    const during = [...warnings];
    await receiver.restart();
    await until("the connection", () => push.usable);
    await until("the end of the outage", () => warnings.length > 1);
    await push.send(["a:1|c"]);
    await until("the line", () => receiver.lines.length === 1);
    const address = `127.0.0.1:${receiver.port}`;
    assertEquals([during, warnings], [[
      `Cannot push statistics to "${address}": it closed the connection; trying again`,
    ], [
      ...during,
      `Pushing statistics to "${address}" again`,
    ]]);
  });
});

Deno.test("push tcp: a receiver that is not there costs one line of the log, and the end no time", async () => {
  const port = freePort();
  await withPush(port, async (push, warnings) => {
    await until("the refusal", () => warnings.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const start = performance.now();
    await push.prepare(true);
    await push.close();
    const tookMs = performance.now() - start;
    assertMatch(
      warnings.join("\n"),
      /^Cannot push statistics to "127\.0\.0\.1:\d+": .*ECONNREFUSED.*; trying again$/,
    );
    assertEquals([push.usable, tookMs < 500], [false, true]);
  });
});

Deno.test("push tcp: the last chance tries at once where a pause is under way", async () => {
  await using receiver = await TcpReceiver.start();
  await receiver.stop();
  await withPush(receiver.port, async (push, warnings) => {
    await until("the refusal", () => warnings.length > 0);
    // So long that the pause between two attempts is of some length.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await receiver.restart();
    await push.prepare(true);
    assertEquals([push.usable, receiver.accepted], [true, 1]);
  });
});

Deno.test("push tcp: a slow receiver is waited for, one that takes nothing for long is given up", async () => {
  await using receiver = await TcpReceiver.start({ isReading: false });
  await withPush(receiver.port, async (push, warnings) => {
    await until("the connection", () => push.usable);
    const slice = Array.from({ length: 1_000 }, (_, index) => `${index}.${"x".repeat(1_000)}:1|c`);
    let taken = 0;
    const sendAll = async () => {
      for (; taken < 40 && push.usable; taken++) await push.send(slice);
    };
    const sent = sendAll();
    // More than the system buffers: the sender waits, and is not in anybody's way.
    await new Promise((resolve) => setTimeout(resolve, 300));
    const whileStalled = taken;
    receiver.read();
    await sent;
    await until("all lines", () => receiver.lines.length === 40_000);
    assertEquals([whileStalled < 40, taken, push.linesLost, warnings], [true, 40, 0, []]);
  });
});

Deno.test("push tcp: what was given to a connection that broke is counted as lost", async () => {
  await using receiver = await TcpReceiver.start({ isReading: false });
  await withPush(receiver.port, async (push, warnings) => {
    await until("the connection", () => push.usable);
    const slice = Array.from({ length: 1_000 }, (_, index) => `${index}.${"x".repeat(1_000)}:1|c`);
    const start = performance.now();
    while (push.usable) await push.send(slice);
    assertMatch(warnings[0] ?? "", /: it took nothing for 30000 ms; trying again$/);
    assertEquals([push.linesLost, performance.now() - start < 5_000], [1_000, true]);
  });
});

Deno.test("push tcp: a door without a house is knocked at less and less, and told once", async () => {
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
    await withPush(port, async (_push, warnings) => {
      await new Promise((resolve) => setTimeout(resolve, 600)); // twelve seconds of a hasty clock
      assertEquals([knocks >= 2, knocks <= 5, warnings.length], [true, true, 1]);
    });
  } finally {
    await new Promise((resolve) => door.close(resolve));
  }
});
