import { assertEquals } from "#assert";
import { type LiveState, LiveStream } from "../../../src/ui/page/live_stream.ts";
import { Session } from "../../../src/ui/page/session.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";

/** A service whose answers the test makes up. */
class Bed {
  readonly clock = new FakeClock();
  readonly session = new Session();
  readonly states: string[] = [];
  readonly tokens: (string | undefined)[] = [];
  readonly seen: number[] = [];
  answer: () => Response | Promise<Response> = () => new Response(null, { status: 500 });
  readonly stream: LiveStream;

  constructor() {
    this.stream = new LiveStream({
      session: this.session,
      clock: this.clock,
      random: () => 0.5,
      fetch: (_, init) => {
        this.tokens.push(new Headers(init?.headers).get("authorization")?.replace("Bearer ", ""));
        return Promise.resolve().then(() => this.answer());
      },
      onSnapshot: ({ at }) => this.seen.push(at),
      onState: (state) => this.states.push(stateText(state, this.clock.now())),
    });
  }

  /** Answers with a stream that the test writes. */
  open(): ReadableStreamDefaultController<Uint8Array> {
    const opened: ReadableStreamDefaultController<Uint8Array>[] = [];
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void opened.push(controller) });
    this.answer = () => new Response(body);
    const [controller] = opened;
    if (controller === undefined) throw new Error("Cannot write the stream: it did not start");
    return controller;
  }

  async last(state: string): Promise<void> {
    await until(state, () => this.states.at(-1) === state);
  }
}

function stateText(state: LiveState, now: number): string {
  return state.kind === "reconnecting" ? `in ${state.at - now} ms: ${state.why}` : state.kind;
}

function snapshot(at: number): Uint8Array {
  return new TextEncoder().encode(`event: snapshot\ndata: {"at":${at}}\n\n`);
}

Deno.test("page: the stream is live, and connects again when the service ends it", async () => {
  const bed = new Bed();
  const controller = bed.open();
  bed.stream.start();
  controller.enqueue(snapshot(1));
  controller.enqueue(snapshot(2));
  await until("both", () => bed.seen.length === 2);
  bed.answer = () => new Response(null, { status: 503 });
  controller.close();
  await bed.last("in 1000 ms: the service ended the stream");
  bed.clock.advance(1_000);
  await bed.last("in 2000 ms: too many pages are open");
  assertEquals(bed.states.slice(0, 3), ["connecting", "live", "in 1000 ms: the service ended the stream"]);
  bed.stream.stop();
  assertEquals([bed.states.at(-1), bed.clock.waiting], ["stopped", 0]);
});

Deno.test("page: it waits longer and longer, up to half a minute, and begins anew after a snapshot", async () => {
  const bed = new Bed();
  bed.answer = () => Promise.reject(new TypeError("no network"));
  bed.stream.start();
  for (const ms of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    await bed.last(`in ${ms} ms: no connection`);
    bed.clock.advance(ms - 1);
    assertEquals(bed.states.at(-1), `in ${ms} ms: no connection`);
    if (ms === 30_000) bed.answer = () => Promise.reject(new TypeError("no network"));
    bed.clock.advance(1);
  }
  await bed.last("in 30000 ms: no connection");
  const controller = bed.open();
  bed.clock.advance(30_000);
  controller.enqueue(snapshot(1));
  await bed.last("live");
  controller.error(new TypeError("lost"));
  await bed.last("in 1000 ms: no connection");
  bed.stream.stop();
});

Deno.test("page: a stream that falls silent is taken for a broken one", async () => {
  const bed = new Bed();
  const controller = bed.open();
  bed.stream.start();
  controller.enqueue(snapshot(1));
  await bed.last("live");
  bed.clock.advance(7_999);
  assertEquals(bed.states.at(-1), "live");
  bed.clock.advance(1);
  assertEquals(bed.states.at(-1), "in 1000 ms: the service stopped sending");
  bed.stream.stop();
});

Deno.test("page: it rests while the page is hidden, and while it is stopped nothing wakes it", async () => {
  const bed = new Bed();
  bed.open().enqueue(snapshot(1));
  bed.stream.start();
  await bed.last("live");
  bed.stream.setHidden(true);
  assertEquals([bed.states.at(-1), bed.clock.waiting], ["hidden", 0]);
  bed.open().enqueue(snapshot(2));
  bed.stream.setHidden(false);
  await bed.last("live");
  bed.stream.stop();
  bed.stream.setHidden(true);
  bed.stream.setHidden(false);
  assertEquals([bed.states.at(-1), bed.tokens.length], ["stopped", 2]);
});

Deno.test("page: it shows the token that there is, and ends with it", async () => {
  const bed = new Bed();
  const { session, stream } = bed;
  session.onChange(() => stream.followSession());
  bed.answer = () => new Response(null, { status: 401 });
  stream.start();
  await bed.last("refused");
  session.store("live", "wrong");
  await until("the second call", () => bed.tokens.length === 2);
  await bed.last("refused");
  assertEquals(session.problem("live"), "The service rejected the token.");
  bed.open().enqueue(snapshot(1));
  session.store("live", "right");
  await bed.last("live");
  // One more token takes nothing away from a stream that runs.
  session.store("administration", "more");
  assertEquals(bed.states.at(-1), "live");
  bed.answer = () => new Response(null, { status: 401 });
  session.forget();
  await bed.last("refused");
  assertEquals(bed.tokens, [undefined, "wrong", "right", undefined]);
  stream.stop();
});

Deno.test("page: one that was refused waits for a token, whether somebody looks or not", async () => {
  const bed = new Bed();
  bed.answer = () => new Response(null, { status: 401 });
  bed.stream.start();
  await bed.last("refused");
  bed.stream.setHidden(true);
  bed.stream.setHidden(false);
  assertEquals([bed.states.at(-1), bed.tokens.length], ["refused", 1]);
});

Deno.test("page: a token that is given while another answer is on its way is used", async () => {
  const bed = new Bed();
  const { session, stream } = bed;
  session.onChange(() => stream.followSession());
  bed.answer = () => {
    bed.open().enqueue(snapshot(1));
    session.store("administration", "right");
    return new Response(null, { status: 401 });
  };
  stream.start();
  await bed.last("live");
  assertEquals(bed.tokens, [undefined, "right"]);
  stream.stop();
});

Deno.test("page: what cannot be read is said to be that", async () => {
  const bed = new Bed();
  const controller = bed.open();
  bed.stream.start();
  controller.enqueue(new TextEncoder().encode("event: snapshot\ndata: {\n\n"));
  await bed.last("in 1000 ms: invalid snapshot");
  // An end in the middle of an event tells nothing.
  const cut = bed.open();
  bed.clock.advance(1_000);
  cut.enqueue(snapshot(1).slice(0, 20));
  cut.close();
  await bed.last("in 2000 ms: the service ended the stream");
  // A page of something between us and the service is no stream.
  bed.answer = () => new Response("<!doctype html><p>Sign in</p>\n\n");
  bed.clock.advance(2_000);
  await bed.last("in 4000 ms: the service ended the stream");
  assertEquals(bed.seen, []);
  bed.stream.stop();
});
