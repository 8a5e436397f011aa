import { assertEquals } from "#assert";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { until } from "../../../harness/until.ts";
import type { WorkerNotice } from "../../../../src/threads/supervised_worker.ts";
import { CONTINUE, type WebhookAnswer } from "../../../../src/webhooks/api/calls.ts";
import type { LimitCall } from "../../../../src/webhooks/model/limit_call.ts";
import type {
  FromWebhookWorker,
  ToWebhookWorker,
  WebhookOptions,
} from "../../../../src/webhooks/service/message.ts";
import {
  type WebhookWorkerHandle,
  WebhookWorkerSupervisor,
} from "../../../../src/webhooks/service/supervisor.ts";

const CALL = { requestId: "r", name: "a", keyHash: "h", body: "{}" };
const OK: WebhookAnswer = { status: 202, headers: {}, body: "{}" };

class Line implements WebhookWorkerHandle {
  readonly sent: ToWebhookWorker[] = [];
  isTerminated = false;
  onmessage: WebhookWorkerHandle["onmessage"] = null;
  onmessageerror: WebhookWorkerHandle["onmessageerror"] = null;
  onerror: WebhookWorkerHandle["onerror"] = null;

  postMessage(message: ToWebhookWorker): void {
    this.sent.push(message);
  }
  terminate(): void {
    this.isTerminated = true;
  }
  /** The messages of the worker. */
  say(message: FromWebhookWorker | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }
  /** Answers the last request. */
  async answer(answer: WebhookAnswer): Promise<void> {
    await Promise.resolve();
    const sent = this.sent.findLast((message) => message.type === "requests");
    const asked = sent?.type === "requests" ? sent.requests.at(-1) : undefined;
    if (asked !== undefined) this.say({ type: "answers", answers: [{ id: asked.id, answer }] });
  }
}

function bed(limit: LimitCall = () => Promise.resolve({ code: "OK" })) {
  const lines: Line[] = [];
  const health: [boolean, string][] = [];
  const isNew: boolean[] = [];
  const clock = new FakeClock();
  const log = new RecordedLogger();
  const supervisor = new WebhookWorkerSupervisor({
    options: {} as WebhookOptions,
    limit,
    clock,
    random: () => 0,
    logger: log,
    onHealth: (healthy, reason) => void health.push([healthy, reason]),
    onMetrics: (_, first) => void isNew.push(first),
    createWorker: () => {
      const line = new Line();
      lines.push(line);
      return line;
    },
  });
  const line = () => lines.at(-1) ?? new Line();
  return { supervisor, clock, lines, line, health, isNew, log };
}

/** A bed whose worker is ready. */
function readyBed() {
  const ready = bed();
  ready.supervisor.start();
  ready.line().say({ type: "ready" });
  return ready;
}

async function end(supervisor: WebhookWorkerSupervisor, line: Line): Promise<void> {
  const stopped = supervisor.stop(0);
  line.say({ type: "stopped" });
  await stopped;
}

const codeOf = (
  answer: WebhookAnswer | undefined,
) => [answer?.status, answer?.code, answer?.headers["retry-after"]];
const AWAY = [503, "webhooks_unavailable", "1"];
const STOPPING = [503, "shutting_down", "1"];
const METRICS = { counters: {}, gauges: {}, durations: {} };

Deno.test("webhook worker supervisor: calls wait for the first worker", async () => {
  const { supervisor, clock, line, lines, health } = bed();
  const first = supervisor.acceptTrigger(CALL);
  assertEquals([lines.length, health], [0, [[false, "starting"]]]);
  supervisor.start();
  const second = supervisor.acceptEvent({ requestId: "s" });
  clock.advance(4_999);
  assertEquals(line().sent.map(({ type }) => type), ["start"]);
  line().say({ type: "ready" });
  await supervisor.ready;
  assertEquals(line().sent.map(({ type }) => type), ["start", "requests"]);
  line().say({ type: "answers", answers: [{ id: 1, answer: CONTINUE }, { id: 2, answer: OK }] });
  assertEquals([await first, await second], [CONTINUE, OK]);
  const accepted = supervisor.acceptTrigger(CALL);
  void line().answer(OK);
  assertEquals(await accepted, OK);
  assertEquals(health, [[false, "starting"], [true, ""]]);
  await end(supervisor, line());
  assertEquals(clock.waiting, 0);
});

for (
  const [what, happens, state] of [
    ["that takes too long", (_: Line, clock: FakeClock) => clock.advance(5_000), "starting"],
    ["that fails", (line: Line) => line.say({ type: "failed", reason: "no disk" }), "no disk"],
    ["that ends", (line: Line) => line.onerror?.(new ErrorEvent("error", { message: "boom" })), "boom"],
    [
      "whose store is unavailable",
      (line: Line) => line.say({ type: "waiting", reason: "a reason" }),
      "a reason",
    ],
  ] as const
) {
  Deno.test(`webhook worker supervisor: no start waits longer for a first worker ${what}`, async () => {
    const { supervisor, clock, line, health } = bed();
    supervisor.start();
    const early = supervisor.acceptTrigger(CALL);
    happens(line(), clock);
    await supervisor.ready;
    assertEquals(codeOf(await early), AWAY);
    assertEquals(codeOf(await supervisor.acceptTrigger(CALL)), AWAY, "the next one does not wait at all");
    clock.advance(1_000);
    line().say({ type: "ready" });
    assertEquals(line().sent.map(({ type }) => type), ["start"], "what was refused is not asked later");
    assertEquals(health.slice(-2), [[false, state], [true, ""]]);
    const asked = supervisor.acceptTrigger(CALL);
    void line().answer(OK);
    assertEquals(await asked, OK);
    await end(supervisor, line());
    assertEquals(clock.waiting, 0);
  });
}

Deno.test("webhook worker supervisor: not more calls wait for the first worker than may wait at all", async () => {
  const { supervisor, line } = bed();
  const waiting = Array.from({ length: 10_000 }, () => supervisor.acceptTrigger(CALL));
  const [status, code] = codeOf(await supervisor.acceptTrigger(CALL));
  assertEquals([status, code], [503, "webhooks_unavailable"]);
  supervisor.start();
  await end(supervisor, line());
  const codes = new Set((await Promise.all(waiting)).map((answer) => answer?.code));
  assertEquals([...codes], ["shutting_down"]);
});

Deno.test("webhook worker supervisor: a worker that waits for its store delays no start, and is not replaced", async () => {
  const { supervisor, clock, lines, line, health, log } = bed();
  supervisor.start();
  const told = () =>
    log.lines.filter(({ message }) => message.startsWith("Webhook worker is waiting")).length;
  for (let second = 0; second < 121; second += 5) {
    clock.advance(5_000);
    line().say({ type: "waiting", reason: "no connection" });
    await supervisor.ready;
    assertEquals(codeOf(await supervisor.acceptTrigger(CALL)), AWAY);
  }
  assertEquals([lines.length, health.at(-1), told()], [1, [false, "no connection"], 13]);
  line().say({ type: "ready" });
  assertEquals(health.at(-1), [true, ""]);
  await end(supervisor, line());
});

Deno.test("webhook worker supervisor: what its operator should know is reported while all is healthy", async () => {
  const { supervisor, line, health } = readyBed();
  line().say({ type: "metrics", metrics: { ...METRICS, note: "the clock is off" } });
  line().say({ type: "metrics", metrics: { ...METRICS, note: "the clock is off", problem: "no disk" } });
  line().say({ type: "metrics", metrics: METRICS });
  assertEquals(health.slice(-3), [[true, "the clock is off"], [false, "no disk"], [true, ""]]);
  await end(supervisor, line());
});

Deno.test("webhook worker supervisor: calls of one turn are one message, and a worker that fails takes them along", async () => {
  const { supervisor, clock, lines, line } = readyBed();
  const answered = [supervisor.acceptTrigger(CALL), supervisor.acceptEvent({ requestId: "s" })];
  await Promise.resolve();
  assertEquals(line().sent.slice(1).map((sent) => sent.type === "requests" && sent.requests.length), [2]);
  line().say({ type: "answers", answers: [{ id: 2, answer: OK }, { id: 1, answer: CONTINUE }] });
  assertEquals(await Promise.all(answered), [CONTINUE, OK]);
  const lost = supervisor.acceptTrigger(CALL);
  line().onerror?.(new ErrorEvent("error", { message: "boom" }));
  clock.advance(1_000);
  line().say({ type: "ready" });
  assertEquals(codeOf(await lost), AWAY);
  assertEquals(lines.map(({ sent }) => sent.map(({ type }) => type)), [["start", "requests"], ["start"]]);
  const last = supervisor.acceptTrigger(CALL);
  const stopped = supervisor.stop(0);
  assertEquals(line().sent.map(({ type }) => type), ["start", "requests", "stop"]);
  line().say({ type: "stopped" });
  await stopped;
  assertEquals(codeOf(await last), STOPPING);
});

Deno.test("webhook worker supervisor: a call waits for 10 seconds", async () => {
  const { supervisor, clock, line } = readyBed();
  const waiting = supervisor.acceptTrigger(CALL);
  for (let second = 0; second < 11; second++) {
    clock.advance(1_000);
    line().say({ type: "metrics", metrics: METRICS });
  }
  assertEquals(codeOf(await waiting), AWAY);
  // Its answer comes too late, and harms no call.
  void line().answer(OK);
  await end(supervisor, line());
  assertEquals(clock.waiting, 0);
});

for (
  const [what, fail, state] of [
    ["an error", (line: Line) => line.onerror?.(new ErrorEvent("error", { message: "boom" })), "boom"],
    ["a failed start", (line: Line) => line.say({ type: "failed", reason: "no disk" }), "no disk"],
  ] as const
) {
  Deno.test(`webhook worker supervisor: after ${what} another worker is started, later and later`, async () => {
    const { supervisor, clock, lines, line, health, isNew } = readyBed();
    line().say({ type: "metrics", metrics: METRICS });
    const waiting = supervisor.acceptTrigger(CALL);
    const waits: number[] = [];
    for (let round = 0; round < 3; round++) {
      const before = lines.length;
      fail(line());
      const failedAt = clock.now();
      while (lines.length === before) clock.advance(25);
      waits.push(clock.now() - failedAt);
    }
    assertEquals(codeOf(await waiting), AWAY);
    assertEquals(waits, [125, 250, 500]);
    assertEquals(lines.map(({ isTerminated }) => isTerminated), [true, true, true, false]);
    assertEquals(health.at(-1), [false, state]);
    line().say({ type: "ready" });
    line().say({ type: "metrics", metrics: METRICS });
    line().say({ type: "metrics", metrics: METRICS });
    assertEquals([health.at(-1), isNew], [[true, ""], [true, true, false]]);
    const next = supervisor.acceptTrigger(CALL);
    void line().answer(OK);
    assertEquals(await next, OK);
    await end(supervisor, line());
  });
}

Deno.test("webhook worker supervisor: a worker that falls silent is replaced", async () => {
  const { supervisor, clock, lines, line, health } = readyBed();
  clock.advance(15_000);
  assertEquals(lines.length, 1);
  clock.advance(2_000);
  assertEquals([lines.length, lines[0]?.isTerminated], [2, true]);
  assertEquals(health.at(-1), [false, "no message for 15 s"]);
  // What a worker that was given up says is not heard.
  lines[0]?.say({ type: "ready" });
  assertEquals(codeOf(await supervisor.acceptTrigger(CALL)), AWAY);
  await end(supervisor, line());
});

Deno.test("webhook worker supervisor: limits are decided for the worker", async () => {
  const { supervisor, line } = bed((domain) =>
    domain === "edge" ? Promise.resolve({ code: "OVER_LIMIT", resetMs: 5 }) : Promise.reject(new Error("no"))
  );
  supervisor.start();
  line().say({ type: "limit", id: 1, domain: "edge", descriptors: [[["a", "b"]]] });
  line().say({ type: "limit", id: 2, domain: "none", descriptors: [] });
  const answers = await until("both answers", () => {
    const found = line().sent.filter(({ type }) => type === "limit");
    return found.length === 2 && found;
  });
  assertEquals(answers, [
    { type: "limit", id: 1, decision: { code: "OVER_LIMIT", resetMs: 5 } },
    { type: "limit", id: 2, decision: undefined },
  ]);
  await end(supervisor, line());
});

Deno.test("webhook worker supervisor: stopping waits for the worker, for a while", async () => {
  for (const answers of [true, false]) {
    const { supervisor, clock, line, log } = readyBed();
    const waiting = supervisor.acceptTrigger(CALL);
    const stopped = supervisor.stop(10_000);
    assertEquals(line().sent.at(-1), { type: "stop", graceMs: 10_000 });
    assertEquals(codeOf(await supervisor.acceptTrigger(CALL)), STOPPING);
    if (answers) line().say({ type: "stopped" });
    else clock.advance(13_000);
    await stopped;
    assertEquals(codeOf(await waiting), answers ? STOPPING : AWAY);
    assertEquals([line().isTerminated, log.lines.length], [true, answers ? 0 : 1]);
    assertEquals(clock.waiting, 0);
  }
});

const BATCH = { reporter: "r", number: 1, reports: [], events: [] };

Deno.test("webhook worker supervisor: operational events have their outcome, unless the worker is replaced", async () => {
  const { supervisor, line } = bed();
  assertEquals(await supervisor.report(BATCH), "unknown");
  supervisor.start();
  assertEquals(await supervisor.report(BATCH), "unknown");
  line().say({ type: "ready" });
  for (const [isWritten, end] of [[true, "written"], [false, "lost"]] as const) {
    const reported = supervisor.report(BATCH);
    assertEquals(line().sent.at(-1), { type: "report", batch: BATCH });
    line().say({ type: "reported", isWritten });
    assertEquals(await reported, end);
  }
  const failing = supervisor.report(BATCH);
  line().say({ type: "failed", reason: "no disk" });
  assertEquals(await failing, "unknown");
  await end(supervisor, line());
});

Deno.test("webhook worker supervisor: the end of the worker ends the wait for operational events", async () => {
  const { supervisor, line } = readyBed();
  const reported = supervisor.report(BATCH);
  await end(supervisor, line());
  assertEquals(await reported, "unknown");
  assertEquals(await supervisor.report(BATCH), "unknown");
});
