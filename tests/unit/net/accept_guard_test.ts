import { assertEquals } from "#assert";
import { AcceptGuard } from "../../../src/net/accept_guard.ts";
import { EpisodeLog } from "../../../src/base/episode_log.ts";
import { Acceptor } from "../../../src/net/acceptor.ts";
import type { Logger } from "../../../src/base/log.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { Duplex } from "node:stream";

/** A guard or an acceptor on a clock that stands still, and what it says. */
function watched() {
  const clock = new FakeClock();
  const said: string[] = [];
  const log = (message: string, fields: object = {}) =>
    void said.push(`${message} ${JSON.stringify(fields)}`);
  const logger: Logger = { debug: log, info: log, warning: log, error: log };
  const onState = (problem: string | undefined) => void said.push(`state ${problem}`);
  return { clock, said, options: { name: "test", clock, logger, onState } };
}

function exhausted(): Error {
  return Object.assign(new Error("Too many open files"), { code: "EMFILE" });
}

/** Lets all that is ready run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

Deno.test("accept guard: repeats a failed attempt, and reports once it fails for a second and once it succeeds", async () => {
  const { clock, said, options } = watched();
  const guard = new AcceptGuard(options);
  const attempt = () => clock.elapsed() < 1_700_000_001_500 ? Promise.reject(exhausted()) : "accepted";
  const accepted = guard.retry(attempt);
  for (let round = 0; round < 15; round++) {
    await settle();
    assertEquals(guard.isFailing, true);
    clock.advance(100);
  }
  assertEquals([await accepted, guard.failures, guard.isFailing, clock.waiting], ["accepted", 15, false, 0]);
  assertEquals(said, [
    'Cannot accept connections; retrying {"listener":"test","error":"Too many open files"}',
    "state connections are not accepted: Too many open files",
    'Accepting connections again {"listener":"test","failures":15,"pausedMs":1500}',
    "state undefined",
  ]);
});

Deno.test("accept guard: an accept that waits is no failure, and moments of failure are logged once in ten seconds", async () => {
  const { clock, said, options } = watched();
  const guard = new AcceptGuard(options);
  let next = Promise.withResolvers<string>();
  const accept = () => {
    next = Promise.withResolvers();
    return next.promise;
  };
  const accepted = guard.retry(accept);
  for (let round = 0; round < 3; round++) {
    next.reject(exhausted());
    await settle();
    clock.advance(100);
    await settle();
    assertEquals(guard.isFailing, true);
    clock.advance(100);
    assertEquals(guard.isFailing, false);
  }
  guard.close();
  next.reject(new Error("closed"));
  assertEquals([await accepted, guard.failures, clock.waiting, said.length], [undefined, 3, 0, 2]);
});

class FakeConnection extends Duplex {
  bytesRead = 0;
  override _read(): void {}
}

/** A listener whose connections and failures come from the test. */
class FakeListener {
  #next = Promise.withResolvers<FakeConnection>();

  accept(): Promise<FakeConnection> {
    this.#next = Promise.withResolvers();
    return this.#next.promise;
  }

  async connect(bytesRead = 0): Promise<FakeConnection> {
    const connection = new FakeConnection();
    connection.bytesRead = bytesRead;
    this.#next.resolve(connection);
    await settle();
    return connection;
  }

  /** Accepted connections that are not handed out when it is closed. */
  readonly left: FakeConnection[] = [];

  async fail(error: Error): Promise<void> {
    this.#next.reject(error);
    await settle();
  }

  close(): FakeConnection[] {
    this.#next.reject(new Error("closed"));
    return this.left;
  }
}

/** Runs with an acceptor, and closes it. */
async function withAcceptor(
  maxConnections: number,
  run: (
    bed: ReturnType<typeof watched> & { listener: FakeListener; acceptor: Acceptor<FakeConnection> },
  ) => Promise<void>,
): Promise<void> {
  const bed = watched();
  const listener = new FakeListener();
  const acceptor = new Acceptor(listener, () => {}, { ...bed.options, maxConnections });
  await run({ ...bed, listener, acceptor });
  acceptor.close();
  await settle();
}

Deno.test("acceptor: connections beyond the limit are closed, which is logged once until it is over", () =>
  withAcceptor(2, async ({ said, listener, acceptor }) => {
    const connections = [];
    for (let count = 0; count < 4; count++) connections.push(await listener.connect());
    assertEquals(connections.map(({ destroyed }) => destroyed), [false, false, true, true]);
    connections[0]?.destroy();
    await settle();
    const after = await listener.connect();
    assertEquals([after.destroyed, acceptor.connections, acceptor.refused], [false, 2, 2]);
    assertEquals(said, [
      'Connection limit reached; refusing connections {"listener":"test","limit":2}',
      'Below the connection limit again {"listener":"test","refused":2}',
    ]);
  }));

Deno.test("acceptor: without descriptors the oldest silent connections are closed, and for a minute there is a limit", () =>
  withAcceptor(Infinity, async ({ clock, listener, acceptor }) => {
    const connections: FakeConnection[] = [];
    // The first two have said something.
    for (let count = 0; count < 32; count++) connections.push(await listener.connect(count < 2 ? 1 : 0));
    await listener.fail(exhausted());
    assertEquals(connections.flatMap(({ destroyed }, index) => destroyed ? [index] : []), [2, 3, 4, 5]);
    clock.advance(100);
    await settle();
    const refused = (await listener.connect()).destroyed;
    clock.advance(60_000);
    const later = (await listener.connect()).destroyed;
    assertEquals([refused, later, acceptor.failures, acceptor.refused], [true, false, 1, 1]);
  }));

Deno.test("acceptor: without descriptors connections in use stay, and set no limit to new ones", () =>
  withAcceptor(Infinity, async ({ clock, listener, acceptor }) => {
    for (let count = 0; count < 40; count++) await listener.connect(1);
    await listener.fail(exhausted());
    clock.advance(100);
    await settle();
    const next = await listener.connect(1);
    assertEquals([next.destroyed, acceptor.connections, acceptor.refused], [false, 41, 0]);
  }));

Deno.test("episode log: a state that begins soon after the last one and lasts is logged after all", () => {
  const clock = new FakeClock();
  const log = new EpisodeLog(clock);
  const said: string[] = [];
  const holds = () => log.begin(() => void said.push("begins"));
  const ends = () => log.end(() => void said.push("ends"));
  holds();
  ends();
  clock.advance(5_000);
  holds();
  clock.advance(1_000);
  holds();
  clock.advance(10_000);
  holds();
  holds();
  ends();
  ends();
  assertEquals(said, ["begins", "ends", "begins", "ends"]);
});

Deno.test("acceptor: connections that were accepted just before it is closed are served", async () => {
  const { options } = watched();
  const listener = new FakeListener();
  const served: FakeConnection[] = [];
  const accept = (stream: FakeConnection) => void served.push(stream);
  const acceptor = new Acceptor(listener, accept, { ...options, maxConnections: Infinity });
  const early = listener.connect(1);
  listener.left.push(new FakeConnection());
  await acceptor.close();
  const [first] = [await early];
  assertEquals([served.length, served.includes(first), first.destroyed], [2, true, false]);
});
