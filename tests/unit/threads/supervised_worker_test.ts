import { assertEquals } from "#assert";
import {
  SupervisedWorker,
  type SupervisedWorkerOptions,
  type WorkerHandle,
  type WorkerNotice,
} from "../../../src/threads/supervised_worker.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

type Sent = { readonly type: "start" | "work" | "ping" | "stop" };
type Received = { readonly type: "done"; readonly id: number };

class Handle implements WorkerHandle<Sent, Received> {
  readonly sent: string[] = [];
  isTerminated = false;
  onmessage: WorkerHandle<Sent, Received>["onmessage"] = null;
  onmessageerror: WorkerHandle<Sent, Received>["onmessageerror"] = null;
  onerror: WorkerHandle<Sent, Received>["onerror"] = null;

  postMessage({ type }: Sent): void {
    this.sent.push(type);
  }
  terminate(): void {
    this.isTerminated = true;
  }
  say(message: Received | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }
}

function bed(options: Partial<SupervisedWorkerOptions<Sent, Received>> = {}) {
  const [clock, log, handles] = [new FakeClock(), new RecordedLogger(), [] as Handle[]];
  const received: [number, (message: Sent) => void][] = [];
  const worker = new SupervisedWorker<Sent, Received>({
    name: "Test worker",
    meanwhile: "waiting",
    clock,
    logger: log,
    createWorker: () => {
      const handle = new Handle();
      handles.push(handle);
      return handle;
    },
    startMessage: () => ({ type: "start" }),
    onMessage: ({ id }, reply) => void received.push([id, reply]),
    heartbeatMs: 1_000,
    ...options,
  });
  return { clock, log, handles, received, worker, last: () => handles.at(-1) ?? new Handle() };
}

const failures = ({ lines }: RecordedLogger) =>
  lines.map(({ fields }) => [fields["error"], fields["restartMs"]]);

Deno.test("supervised worker: a failed worker is replaced after a backoff, and not heard any more", () => {
  const { clock, log, handles, received, worker, last } = bed();
  worker.start();
  last().say({ type: "done", id: 1 });
  const event = new ErrorEvent("error", { message: "boom", cancelable: true });
  last().onerror?.(event);
  assertEquals([event.defaultPrevented, worker.isRunning, last().isTerminated], [true, false, true]);
  worker.post({ type: "work" });
  clock.advance(1_000);
  handles[0]?.say({ type: "done", id: 2 });
  received[0]?.[1]({ type: "work" });
  assertEquals([handles.map(({ sent }) => sent), received.length], [[["start"], ["start"]], 1]);
  last().onmessageerror?.(new MessageEvent("messageerror"));
  clock.advance(2_000);
  clock.advance(60_000);
  worker.fail("late");
  assertEquals(failures(log), [["boom", 1_000], ["a message cannot be read", 2_000], ["late", 1_000]]);
  assertEquals(log.lines[0]?.message, "Test worker failed; restarting it and waiting");
  worker.terminate();
  assertEquals(clock.waiting, 0);
});

Deno.test("supervised worker: jitter takes up to half of the backoff", () => {
  const { log, worker } = bed({ random: () => 0.5, backoff: { firstMs: 100, longestMs: 150 } });
  worker.start();
  for (let round = 0; round < 3; round++) worker.fail("no");
  assertEquals(failures(log), [["no", 75], ["no", 113], ["no", 113]]);
  worker.terminate();
});

Deno.test("supervised worker: one that cannot be started is logged and tried again", () => {
  const createWorker = () => {
    throw new Error("no permission");
  };
  const { clock, log, worker } = bed({ createWorker });
  worker.start();
  clock.advance(1_000);
  assertEquals(failures(log), [1_000, 2_000].map((ms) => [new Error("no permission"), ms]));
  worker.terminate();
});

Deno.test("supervised worker: an awaited reply that does not come is a failure", () => {
  const { clock, log, worker, last } = bed({ maxPatience: 2 });
  worker.expect("receipt", 3_000);
  worker.start();
  clock.advance(10_000);
  worker.expect("receipt", 3_000);
  clock.advance(2_000);
  // It is awaited already.
  worker.expect("receipt", 3_000);
  worker.settle("receipt");
  assertEquals(clock.waiting, 0, "no timer while nothing is awaited");
  for (const seconds of [3, 6, 6]) {
    worker.expect("receipt", 3_000);
    clock.advance(seconds * 1_000 - 1);
    assertEquals(last().isTerminated, false);
    clock.advance(1);
    assertEquals(last().isTerminated, true);
    clock.advance(4_000);
  }
  assertEquals(failures(log).map(([error]) => error), [3, 6, 6].map((s) => `no receipt for ${s} s`));
  worker.terminate();
  assertEquals(clock.waiting, 0);
});

Deno.test("supervised worker: pings and its own messages show that it lives", () => {
  const { clock, log, handles, worker, last } = bed({ ping: { type: "ping" }, maxSilenceMs: () => 5_000 });
  worker.start();
  for (let second = 0; second < 120; second++) {
    clock.advance(1_000);
    if (second % 4 === 0) last().say({ type: "alive" });
  }
  assertEquals([handles.length, handles[0]?.sent.filter((type) => type === "ping").length], [1, 31]);
  clock.advance(5_000);
  assertEquals(failures(log), [["no message for 5 s", 1_000]]);
  worker.terminate();
});

Deno.test("supervised worker: stopping waits for the worker, and nothing is started after it", async () => {
  for (const [end, isInTime] of [["stopped", true], ["failed", true], ["silent", false]] as const) {
    const { clock, handles, worker, last } = bed({ maxSilenceMs: () => 5_000 });
    worker.start();
    const stopped = worker.stop({ type: "stop" }, 2_000);
    if (end === "stopped") last().say({ type: "stopped" });
    else if (end === "failed") worker.fail("no");
    else clock.advance(2_000);
    assertEquals([end, await stopped, last().isTerminated], [end, isInTime, true]);
    worker.start();
    assertEquals([last().sent, handles.length, clock.waiting], [["start", "stop"], 1, 0]);
  }
});
