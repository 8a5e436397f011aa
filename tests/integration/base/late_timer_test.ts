import { assert, assertEquals, assertRejects } from "#assert";
import { once } from "node:events";
import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers";
import { systemClock } from "../../../src/base/clock.ts";
import { withTimeout } from "../../../src/base/wait.ts";

const TIMEOUT_MS = 50;
const STALL_MS = 250;
/** Timeout for the answer of a peer on a busy machine. */
const INPUT_MS = 60_000;
const COUNT = 50;

/** Blocks the thread, as a machine that is busy or stopped does, and until the input of the test is there. */
function standStill(isThere = () => true): void {
  const end = performance.now() + STALL_MS;
  while (performance.now() < end || (!isThere() && performance.now() < end + INPUT_MS));
}

class Peer implements AsyncDisposable {
  readonly sockets: Socket[] = [];
  readonly #worker: Worker;
  readonly #answers = new Int32Array(new SharedArrayBuffer(4));
  port = 0;

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.postMessage(this.#answers);
  }

  /** Number of answers that left. */
  get answers(): number {
    return Atomics.load(this.#answers, 0);
  }

  static async start(): Promise<Peer> {
    const worker = new Worker(new URL("./late_timer_peer.ts", import.meta.url), { type: "module" });
    const peer = new Peer(worker);
    peer.port = Number(await peer.message());
    return peer;
  }

  async message(): Promise<unknown> {
    return await new Promise((resolve) => this.#worker.onmessage = ({ data }) => resolve(data));
  }

  post(text: string): void {
    this.#worker.postMessage(text);
  }

  connect(): Socket {
    const socket = connect({ host: "127.0.0.1", port: this.port });
    this.sockets.push(socket);
    return socket;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.sockets.map(async (socket) => {
      const closed = once(socket, "close");
      socket.destroy();
      await closed;
    }));
    const closed = this.message();
    this.post("close");
    await closed;
    this.#worker.terminate();
  }
}

/**
 * The awaited work, begun before the thread stands still; what it answers settles with the input that it needs, so many
 * answers of the peer.
 */
const WAITS: Readonly<
  Record<string, readonly [answers: number, prepare: (peer: Peer) => Promise<() => Promise<unknown>>]>
> = {
  "answers on connections": [COUNT, async (peer) => {
    const sockets = Array.from({ length: COUNT }, () => peer.connect());
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    return () => {
      const answers = sockets.map((socket) => once(socket, "data"));
      for (const socket of sockets) socket.write("question");
      return Promise.all(answers);
    };
  }],
  "connections": [
    0,
    (peer) =>
      Promise.resolve(() =>
        Promise.all(Array.from({ length: COUNT }, () => once(peer.connect(), "connect")))
      ),
  ],
  "a message of another thread": [1, (peer) =>
    Promise.resolve(() => {
      const message = peer.message();
      peer.post("question");
      return message;
    })],
  "a lookup": [0, () => Promise.resolve(() => lookup("127.0.0.1"))],
};

for (const [name, [answers, prepare]] of Object.entries(WAITS)) {
  Deno.test(`a timer that is late lets input be read before: ${name}`, async () => {
    await using peer = await Peer.start();
    const begin = await prepare(peer);
    // Other timers that are late must not hide the input.
    for (let other = 0; other < COUNT; other++) systemClock.after(TIMEOUT_MS, () => {});
    const work = withTimeout(begin(), TIMEOUT_MS, systemClock, () => new Error("timeout"));
    // The questions have to leave before.
    do await new Promise((resolve) => setTimeout(resolve, 0)); while (
      peer.sockets.some(({ writableLength }) => writableLength > 0)
    );
    standStill(() => peer.answers >= answers);
    await work;
  });
}

Deno.test("a timer that is late fires after that, and not when it is cancelled meanwhile", async () => {
  const fired: string[] = [];
  const cancel = systemClock.after(TIMEOUT_MS, () => fired.push("cancelled"));
  systemClock.after(TIMEOUT_MS, () => {
    fired.push("first");
    cancelOther();
  });
  const cancelOther = systemClock.after(TIMEOUT_MS, () => fired.push("cancelled by the first"));
  const never = withTimeout(new Promise(() => {}), TIMEOUT_MS, systemClock, () => new Error("timeout"));
  const rejected = assertRejects(() => never);
  setTimeout(cancel, 0);
  standStill();
  assertEquals((await rejected).message, "timeout");
  assertEquals(fired, ["first"]);
});

Deno.test("late timer: turns that take long postpone it by a few of them only", async () => {
  const fired = Promise.withResolvers<void>();
  let turns = 0;
  let isOver = false;
  const longTurn = () => {
    if (isOver) return;
    turns++;
    const end = performance.now() + 30;
    while (performance.now() < end);
    setImmediate(longTurn);
  };
  systemClock.after(1, fired.resolve);
  standStill();
  setImmediate(longTurn);
  await fired.promise;
  isOver = true;
  assert(turns < 10, `it fired after ${turns} turns`);
  await new Promise((resolve) => setImmediate(resolve));
});

Deno.test("a timer that is late lets as many turns pass when another one was late just before", async () => {
  const turns: number[] = [];
  let isOver = false;
  let turn = 0;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  for (let round = 0; round < 5; round++) {
    await new Promise<void>((resolve) => {
      systemClock.after(1, resolve);
      const end = performance.now() + 10;
      while (performance.now() < end);
      turn = 0;
    });
    turns.push(turn);
  }
  isOver = true;
  // On a busy machine some turns take long.
  assert(turns.slice(1).some((each) => each >= 75), `they ran after ${turns} turns`);
});
