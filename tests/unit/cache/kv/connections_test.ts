import { assertEquals } from "#assert";
import { parseKvAddress } from "../../../../src/cache/kv/address.ts";
import { KvConnections, type KvConnectionsOptions } from "../../../../src/cache/kv/connections.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

const ATTEMPTS = [1, 2, 3, 6, 7, 60];

function startup(options: Partial<KvConnectionsOptions>): KvConnections {
  const address = parseKvAddress("single", "h:1");
  return new KvConnections({ address, timeoutMs: 100, clock: new FakeClock(), random: () => 1, ...options });
}

Deno.test("kv connections: later waits double up to the bound, half of it by chance", () => {
  const waits = (random: number) => {
    const connections = startup({ random: () => random });
    return ATTEMPTS.map((attempt) => connections.retryDelayMs(attempt, ""));
  };
  assertEquals(waits(0), [25, 50, 100, 800, 1_000, 1_000]);
  assertEquals(waits(1), [50, 100, 200, 1_600, 2_000, 2_000]);
});

Deno.test("kv connections: other waits hold until the first connection", () => {
  const times = { initialMs: 1_000, maxMs: 30_000, maxElapsedMs: 0 };
  const connections = startup({ startup: times });
  const waits = () => ATTEMPTS.map((attempt) => connections.retryDelayMs(attempt, ""));
  assertEquals(waits(), [1_000, 2_000, 4_000, 30_000, 30_000, 30_000]);
  connections.connected();
  assertEquals(waits(), [50, 100, 200, 1_600, 2_000, 2_000]);
});

Deno.test("kv connections: no wait is too short to leave room for anything else", () => {
  const times = { initialMs: 0, maxMs: 0, maxElapsedMs: 0 };
  const connections = startup({ startup: times, random: () => 0 });
  assertEquals(ATTEMPTS.map((attempt) => connections.retryDelayMs(attempt, "")), [10, 10, 10, 10, 10, 10]);
});

Deno.test("kv connections: attempts are given up once, at the time that was set, with the last error", () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const times = { initialMs: 1_000, maxMs: 4_000, maxElapsedMs: 5_000 };
  const connections = startup({ startup: times, clock, onGivenUp: (text) => told.push(text) });
  const waits = [connections.retryDelayMs(1, "")];
  clock.advance(1_000);
  waits.push(connections.retryDelayMs(2, ""));
  clock.advance(2_000);
  waits.push(connections.retryDelayMs(3, ""));
  assertEquals([waits, told], [[1_000, 2_000, 2_000], []]);
  clock.advance(2_000);
  assertEquals([connections.retryDelayMs(4, "refused"), connections.retryDelayMs(4, "closed"), told], [
    null,
    null,
    [
      'Cannot connect to key-value cache "h:1": no connection within KV_STARTUP_MAX_ELAPSED_TIME, 5000 ms: refused',
    ],
  ]);
});

Deno.test("kv connections: who was connected in time is never given up", () => {
  const clock = new FakeClock();
  const times = { initialMs: 1_000, maxMs: 4_000, maxElapsedMs: 5_000 };
  const told: string[] = [];
  const connections = startup({ startup: times, clock, onGivenUp: (text) => told.push(text) });
  connections.connected();
  clock.advance(10_000);
  assertEquals([connections.retryDelayMs(1, ""), told], [50, []]);
});
