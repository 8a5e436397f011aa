import { assertEquals, assertRejects } from "#assert";
import http2 from "node:http2";
import { GrpcError, withCallMetrics } from "../../src/grpc/grpc_service.ts";
import { FakeClock, quickClock } from "../harness/fake_clock.ts";
import { GrpcClient } from "../harness/grpc_client.ts";
import { eventually, until } from "../harness/until.ts";
import { bytes, LONG_MESSAGE_BYTES, open, Probe, type Start, text } from "./grpc_engine_bed.ts";

/** The contract of the engines, with the same services. */
export function grpcEngineContract(name: string, start: Start): void {
  for (const [title, run] of Object.entries(CASES)) {
    Deno.test(`gRPC engine ${name}: ${title}`, () => run(start));
  }
}

const CASES: Readonly<Record<string, (start: Start) => Promise<void>>> = {
  async "unary calls are answered, immediately and later, with their headers"(start) {
    const { engine } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const ask = async (method: string, request: string, headers = {}) =>
        text((await client.unary(`/test.Probe/${method}`, bytes(request), headers)).messages[0]);
      assertEquals(await ask("Echo", "hello", { b3: "word" }), "hello word");
      assertEquals(await ask("Echo", ""), " -");
      assertEquals(await ask("Later", "later"), "later");
      assertEquals(await ask("Size", "x".repeat(3_000_000)), "3000000");
    }
    await engine.close(1_000);
  },
  async "many calls at the same time are each answered with their own"(start) {
    const { engine } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const calls = Array.from(
        { length: 500 },
        (_, index) => client.unary("/test.Probe/Later", bytes(String(index))),
      );
      const answers = (await Promise.all(calls)).map(({ messages }) => Number(text(messages[0])));
      assertEquals(answers, Array.from({ length: 500 }, (_, index) => index));
    }
    await engine.close(1_000);
  },
  async "refusals carry their code and message, faults tell nothing"(start) {
    const { engine, log } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const refused = async (method: string, request = "") => {
        const { code, details, messages } = await client.unary(method, bytes(request));
        return [code, details, messages.length];
      };
      assertEquals(await refused("/test.Probe/Refuse"), [3, "wrong: 50 % of ключ\nnext line", 0]);
      assertEquals(await refused("/test.Probe/RefuseLater"), [14, "later", 0]);
      assertEquals(await refused("/test.Probe/Break"), [13, "internal error", 0]);
      assertEquals((await refused("/test.Probe/Nothing"))[0], 12);
      assertEquals((await refused("/test.Nothing/Echo"))[0], 12);
      assertEquals((await refused("/test.Probe/Size", "x".repeat(4 * 1024 * 1024 + 1)))[0], 8);
      assertEquals((await refused("/test.Probe/Size", "x"))[0], 0);
    }
    await engine.close(1_000);
    assertEquals(log.map((line) => line.includes("secret detail")), [true]);
  },
  async "a handler sees that its call was cancelled"(start) {
    const { engine, probe } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const gone = new AbortController();
      const answer = client.unary("/test.Probe/Hold", bytes("held"), {}, { signal: gone.signal });
      const call = await until("the call to run", () => probe.held);
      assertEquals(call.cancelled, false);
      gone.abort();
      assertEquals((await answer).code, 1);
      await until("the handler to see it", () => call.cancelled);
      assertEquals((await client.unary("/test.Probe/Size", bytes("x"))).code, 0);
      probe.hold.resolve();
    }
    await engine.close(1_000);
  },
  async "a handler sees that its call is past its deadline"(start) {
    const { engine, probe } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const call = await until("a call to come before its deadline", async () => {
        assertEquals((await client.unary("/test.Probe/Hold", bytes("held"), {}, { timeoutMs: 100 })).code, 4);
        return probe.held;
      });
      assertEquals(probe.wasGone, false);
      await until("the handler to see it", () => call.cancelled);
      probe.hold.resolve();
    }
    await engine.close(1_000);
  },
  async "a handler sees that its connection is lost"(start) {
    const { engine, probe } = await open(start);
    const client = new GrpcClient(engine.address);
    const session = http2.connect(`http://${engine.address}`);
    session.on("error", () => {});
    const stream = session.request({
      ":method": "POST",
      ":path": "/test.Probe/Hold",
      "content-type": "application/grpc",
      "te": "trailers",
    });
    stream.on("error", () => {});
    stream.end(Uint8Array.of(0, 0, 0, 0, 1, 120));
    const call = await until("the call to run", () => probe.held);
    assertEquals(call.cancelled, false);
    session.destroy();
    await until("the handler to see it", () => call.cancelled);
    probe.hold.resolve();
    assertEquals((await client.unary("/test.Probe/Size", bytes("x"))).code, 0);
    client[Symbol.dispose]();
    await engine.close(1_000);
  },
  async "metrics tell of each call that a handler was asked for, and how long it took"(start) {
    const probe = new Probe();
    const told: [method: string, ms?: number][] = [];
    const service = withCallMetrics(probe.service, (method) => ({
      started: () => void told.push([method]),
      ended: (ms) => void told.push([method, ms]),
    }));
    const clock = new FakeClock();
    const { engine } = await open(start, { services: [service], clock });
    {
      using client = new GrpcClient(engine.address);
      for (const method of ["Echo", "Later", "Refuse", "RefuseLater", "Break", "Nothing"]) {
        await client.unary(`/test.Probe/${method}`, bytes(""));
      }
      await client.unary("/test.Probe/Size", bytes("x".repeat(4 * 1024 * 1024 + 1)));
      await client.bidi("/test.Probe/Chat", [bytes("a")]);
      await client.serverStream("/test.Probe/Watch", bytes("first"), (_, cancel) => cancel());
      const answered = ["Echo", "Later", "Refuse", "RefuseLater", "Break"];
      assertEquals(told.splice(0), answered.flatMap((method): typeof told => [[method], [method, 0]]));
      const held = client.unary("/test.Probe/Hold", bytes("held"));
      await until("the call to run", () => probe.held);
      clock.advance(12.25);
      assertEquals((await client.unary("/test.Probe/Echo", bytes(""))).code, 0);
      clock.advance(0.5);
      assertEquals(told.splice(0), [["Hold"], ["Echo"], ["Echo", 0]]);
      probe.hold.resolve();
      await held;
      assertEquals(told, [["Hold", 12.75]]);
    }
    await engine.close(1_000);
  },
  async "metrics count calls that were given up, once"(start) {
    const probe = new Probe();
    const told: string[] = [];
    const count = (line: string) => told.filter((one) => one === line).length;
    const service = withCallMetrics(probe.service, (method) => ({
      started: () => void told.push(`${method} started`),
      ended: () => void told.push(`${method} ended`),
    }));
    const { engine } = await open(start, { services: [service] });
    {
      using client = new GrpcClient(engine.address);
      const gone = new AbortController();
      const cancelled = client.unary("/test.Probe/Hold", bytes("1"), {}, { signal: gone.signal });
      await until("the call to run", () => count("Hold started") === 1);
      await until("a call to come before its deadline", async () => {
        assertEquals((await client.unary("/test.Probe/Hold", bytes("2"), {}, { timeoutMs: 100 })).code, 4);
        return count("Hold started") > 1;
      });
      gone.abort();
      assertEquals((await cancelled).code, 1);
      probe.hold.resolve();
      await until("all calls to end", () => count("Hold ended") === count("Hold started"));
      assertEquals((await client.unary("/test.Probe/Echo", bytes(""))).code, 0);
    }
    await engine.close(1_000);
    assertEquals(count("Hold ended"), count("Hold started"));
    assertEquals(told.slice(-2), ["Echo started", "Echo ended"]);
  },
  async "open connections are counted"(start) {
    const { engine } = await open(start);
    assertEquals(engine.connections, 0);
    {
      using one = new GrpcClient(engine.address, { "grpc.use_local_subchannel_pool": 1 });
      using two = new GrpcClient(engine.address, { "grpc.use_local_subchannel_pool": 1 });
      for (const client of [one, two]) await client.unary("/test.Probe/Echo", bytes(""));
      assertEquals(engine.connections, 2);
    }
    await until("the connections to be closed", () => engine.connections === 0);
    await engine.close(1_000);
  },
  async "a stream from the server goes on until its client ends it"(start) {
    const { engine, probe } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const answer = await client.serverStream("/test.Probe/Watch", bytes("first"), (message, cancel) => {
        if (text(message) === "first") probe.send(bytes("second"));
        else cancel();
      });
      assertEquals([answer.code, answer.messages.map(text)], [1, ["first", "second"]]);
      await until("the stream to end", () => probe.openStreams === 0);
      const refused = await client.serverStream("/test.Probe/Watch", bytes(""), () => {});
      assertEquals([refused.code, refused.details], [5, "nothing to watch"]);
    }
    await engine.close(1_000);
  },
  async "messages both ways are answered in their turn"(start) {
    const { engine } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const answer = await client.bidi("/test.Probe/Chat", ["a", "silent", "b"].map(bytes));
      assertEquals([answer.code, answer.messages.map(text)], [0, ["A", "B"]]);
      const refused = await client.bidi("/test.Probe/Chat", ["refuse"].map(bytes));
      assertEquals([refused.code, refused.details], [3, "no"]);
    }
    await engine.close(1_000);
  },
  async "messages both ways come at any time, up to the size of the method, until one side ends the call"(
    start,
  ) {
    const { engine, probe } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const received: string[] = [];
      const ask = () => client.openBidi("/test.Probe/Pushed", (message) => void received.push(text(message)));
      const first = ask();
      first.send(new Uint8Array(LONG_MESSAGE_BYTES));
      await eventually([LONG_MESSAGE_BYTES], () => probe.received);
      probe.peer?.send(bytes("one"));
      await eventually(["one"], () => received);
      probe.peer?.send(bytes("two"));
      probe.peer?.end();
      assertEquals((await first.answer).code, 0);
      assertEquals([received, probe.openStreams], [["one", "two"], 0]);
      const second = ask();
      second.send(bytes("x"));
      await eventually(2, () => probe.received.length);
      probe.peer?.end(new GrpcError("UNAVAILABLE", "enough"));
      const { code, details } = await second.answer;
      assertEquals([code, details, probe.openStreams], [14, "enough", 0]);
      const third = ask();
      third.send(bytes("x"));
      await eventually(1, () => probe.openStreams);
      third.cancel();
      await eventually(0, () => probe.openStreams);
      probe.peer?.send(bytes("too late"));
      const long = ask();
      long.send(new Uint8Array(LONG_MESSAGE_BYTES + 1));
      assertEquals((await long.answer).code, 8);
    }
    await engine.close(1_000);
  },
  async "closing lets running calls end and ends open streams"(start) {
    const { engine, probe } = await open(start);
    {
      using client = new GrpcClient(engine.address);
      const watching = client.serverStream("/test.Probe/Watch", bytes("first"), () => {});
      const held = client.unary("/test.Probe/Hold", bytes("held"));
      await until("both to be there", () => probe.openStreams === 1 && probe.held !== undefined);
      const closed = engine.close(60_000);
      assertEquals((await watching).code, 14);
      probe.hold.resolve();
      assertEquals(text((await held).messages[0]), "held");
      await closed;
      assertEquals(probe.openStreams, 0);
    }
  },
  async "closing ends what is left after the grace"(start) {
    const { engine, probe } = await open(start);
    using client = new GrpcClient(engine.address);
    const held = client.unary("/test.Probe/Hold", bytes("held"));
    await until(
      "the call to run",
      async () => (await client.unary("/test.Probe/Echo", bytes(""))).code === 0,
    );
    await engine.close(100);
    assertEquals([1, 14].includes((await held).code), true);
    probe.hold.resolve();
  },
  async "a connection is asked to go when it is old"(start) {
    const { engine } = await open(start, {
      maxConnectionAgeMs: 100,
      maxConnectionAgeGraceMs: 50,
      clock: quickClock,
    });
    const session = http2.connect(`http://${engine.address}`);
    const before = performance.now();
    const code = await new Promise<number>((resolve, reject) => {
      session.on("goaway", resolve);
      session.on("error", reject);
    });
    const age = performance.now() - before;
    assertEquals([code, age > 80 && age < 30_000], [0, true]);
    await new Promise<void>((resolve) => session.closed ? resolve() : session.on("close", () => resolve()));
    await engine.close(1_000);
  },
  async "a unix socket is taken over, whether somebody answers on it or not"(start) {
    const folder = await Deno.makeTempDir();
    const path = `${folder}/grpc.sock`;
    leaveSocketBehind(path);
    const target = { kind: "unix", path, mode: 0o600 } as const;
    const { engine } = await open(start, { target });
    assertEquals([engine.address, ((await Deno.stat(path)).mode ?? 0) & 0o777], [`unix:${path}`, 0o600]);
    const { engine: successor } = await open(start, { target });
    await engine.close(1_000);
    {
      using client = new GrpcClient(`unix:${path}`);
      assertEquals((await client.unary("/test.Probe/Echo", bytes("over the socket"))).code, 0);
    }
    await successor.close(1_000);
    assertEquals([...Deno.readDirSync(folder)], []);
    await Deno.remove(folder, { recursive: true });
  },
  async "a port that cannot be had is an error with its name"(start) {
    const error = await assertRejects(() =>
      open(start, { target: { kind: "tcp", host: "192.0.2.1", port: 1 } })
    );
    assertEquals(error.message.startsWith('Cannot listen for gRPC on "192.0.2.1:1": '), true, error.message);
  },
};

/** A socket file without a listener, as a killed process leaves it. */
function leaveSocketBehind(path: string): void {
  using _listener = Deno.listen({ transport: "unix", path: `${path}.live` });
  Deno.linkSync(`${path}.live`, path);
}
