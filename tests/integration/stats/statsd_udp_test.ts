import { assertEquals, assertMatch } from "#assert";
import { pushOutage } from "../../../src/stats/sinks.ts";
import { StatsdUdp } from "../../../src/stats/statsd_udp.ts";
import { freePort } from "../../harness/free_port.ts";
import { patientClock } from "../../harness/fake_clock.ts";
import { eventually, until } from "../../harness/until.ts";
import { UdpReceiver, warningLog } from "../../harness/push_receivers.ts";

async function withPush(
  { host = "127.0.0.1", port }: { readonly host?: string; readonly port: number },
  work: (push: StatsdUdp, warnings: readonly string[]) => Promise<void>,
): Promise<void> {
  const { logger, warnings } = warningLog();
  const push = new StatsdUdp({
    host,
    port,
    clock: patientClock,
    outage: pushOutage(`${host}:${port}`, { clock: patientClock, logger }),
  });
  try {
    await work(push, warnings);
  } finally {
    await push.close();
  }
}

for (const host of ["127.0.0.1", "localhost"]) {
  Deno.test(`push udp: lines arrive at ${host} in packets of at most 1,432 bytes`, async () => {
    await using receiver = await UdpReceiver.start();
    await withPush({ host, port: receiver.port }, async (push, warnings) => {
      const units = Array.from({ length: 1_000 }, (_, index) => `some.stätistic.number${index}:${index}|c`);
      const before = push.usable;
      await push.prepare();
      await push.send(units);
      await eventually([units, []], () => [receiver.lines, warnings]);
      assertEquals([before, push.usable], [false, true]);
      const sizes = receiver.packets.map((packet) => new TextEncoder().encode(packet).length);
      assertEquals([Math.max(...sizes) <= 1_432, Math.min(...sizes.slice(0, -1)) > 1_350], [true, true]);
    });
  });
}

Deno.test("push udp: a port without a listener costs nothing", async () => {
  await withPush({ port: freePort() }, async (push, warnings) => {
    await push.prepare();
    for (let round = 0; round < 3; round++) await push.send(["a:1|c"]);
    assertEquals([warnings, push.linesLost], [[], 0]);
  });
});

Deno.test("push udp: what cannot be sent is counted and logged once", async () => {
  await using receiver = await UdpReceiver.start();
  await withPush({ port: receiver.port }, async (push, warnings) => {
    await push.prepare();
    const tooLong = `${"x".repeat(70_000)}:1|c`;
    await push.send([tooLong, "a:1|c"]);
    await push.send([tooLong]);
    await push.send(["b:1|c"]);
    await until("the packets", () => receiver.packets.length === 2);
    await eventually([["a:1|c", "b:1|c"], 2, 2], () => [receiver.packets, push.linesLost, warnings.length]);
    assertMatch(
      warnings.join("\n"),
      /^Cannot push statistics; retrying .*\nPushing statistics again receiver=.*$/,
    );
  });
});

Deno.test("push udp: an unknown name is logged once, and nothing is sent", async () => {
  await withPush({ host: "no-such-host.invalid", port: 9 }, async (push, warnings) => {
    await push.prepare();
    await push.prepare();
    assertMatch(
      warnings.join("\n"),
      /^Cannot push statistics; retrying receiver=no-such-host\.invalid:9 reason=.+$/,
    );
    assertEquals(push.usable, false);
  });
});
