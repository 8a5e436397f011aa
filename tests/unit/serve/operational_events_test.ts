import { assertEquals } from "#assert";
import type { LimitReport } from "../../../src/ratelimit/decision/limit_episodes.ts";
import { OperationalEvents } from "../../../src/serve/operational_events.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import type { OperationalBatch } from "../../../src/webhooks/model/operational_event.ts";
import type { ReportEnd } from "../../../src/webhooks/service/supervisor.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { settledTurns, until } from "../../harness/until.ts";

const START = Date.UTC(2026, 0, 1);

/** Events whose batches a test settles. */
class Bed {
  readonly clock = new FakeClock(START);
  readonly stats = new StatsStore(100);
  readonly sent: OperationalBatch[] = [];
  readonly events: OperationalEvents;
  #settle: (end: ReportEnd) => void = () => {};

  constructor(maxPerSecond = 1_000) {
    this.events = new OperationalEvents({
      clock: this.clock,
      stats: this.stats,
      maxPerSecond,
      hasThreads: true,
    });
  }

  start(): void {
    this.events.start((batch) => {
      this.sent.push(batch);
      const { promise, resolve } = Promise.withResolvers<ReportEnd>();
      this.#settle = resolve;
      return promise;
    });
  }

  /** Reports the beginnings of so many episodes. */
  begin(count: number, from = 0): void {
    const reports = Array.from({ length: count }, (_, n): LimitReport => ({
      event: "over_limit",
      key: `key${from + n}`,
      hits: 1,
      startedAt: this.clock.now(),
      endsAt: this.clock.now() + 60_000,
      facts: {
        domain: "d",
        entries: [],
        rule: { at: "r.yaml:1:1", metricKey: "d.k" },
        limit: {},
        isShadow: false,
        freeAt: this.clock.now(),
      },
    }));
    this.events.merge(reports, 0);
  }

  /** Settles a batch once it was sent. */
  async settle(end: ReportEnd, sent: number): Promise<void> {
    await until("the batch", () => this.sent.length === sent);
    this.#settle(end);
    this.#settle = () => {};
    // The round goes on in this turn of the event loop and the next one.
    await settledTurns();
  }

  /** The numbers of the batches, and how many reports and events each has. */
  get batches(): (readonly [number: number, reports: number, events: number])[] {
    return this.sent.map(({ number, reports, events }) => [number, reports.length, events.length]);
  }

  get counts(): (number | undefined)[] {
    const counters = new Map(this.stats.counters());
    return ["sent", "suppressed", "dropped"].map((name) => counters.get(`ratelimit.events.${name}`));
  }
}

const LOADED = { kind: "config.loaded", data: { what: "rules" } };

Deno.test("operational events: what was noted before the service is ready is sent at its start", async () => {
  const bed = new Bed();
  bed.events.report(LOADED);
  bed.begin(2);
  bed.start();
  await bed.settle("written", 1);
  assertEquals(bed.batches, [[1, 2, 1]]);
  assertEquals(bed.counts, [3, 0, 0]);
  await bed.events.close();
});

Deno.test("operational events: several are sent together, in one batch at a time", async () => {
  const bed = new Bed();
  bed.start();
  bed.begin(1);
  bed.clock.advance(249);
  assertEquals(bed.batches, []);
  bed.begin(149, 1);
  bed.clock.advance(1);
  await until("the first batch", () => bed.sent.length === 1);
  bed.events.report(LOADED);
  bed.clock.advance(5_000);
  assertEquals(bed.batches, [[1, 100, 0]]);
  await bed.settle("written", 1);
  await bed.settle("written", 2);
  assertEquals(bed.batches, [[1, 100, 0], [2, 50, 1]]);
  assertEquals(bed.counts, [151, 0, 0]);
  await bed.events.close();
});

Deno.test("operational events: a batch with an unknown outcome is sent again as it was", async () => {
  const bed = new Bed();
  bed.start();
  bed.begin(1);
  bed.clock.advance(250);
  await bed.settle("unknown", 1);
  bed.begin(1, 1);
  bed.clock.advance(1_000);
  await bed.settle("unknown", 2);
  bed.clock.advance(1_000);
  await bed.settle("written", 3);
  assertEquals(bed.sent[0], bed.sent[2]);
  bed.clock.advance(1_000);
  await bed.settle("lost", 4);
  assertEquals(bed.batches, [[1, 1, 0], [1, 1, 0], [1, 1, 0], [2, 1, 0]]);
  assertEquals(bed.counts, [1, 0, 1]);
  await bed.events.close();
});

Deno.test("operational events: what cannot be sent is bounded", () => {
  const bed = new Bed(10);
  bed.begin(30);
  for (let n = 0; n < 105; n++) bed.events.report(LOADED);
  assertEquals(bed.counts, [0, 20, 5]);
});

Deno.test("operational events: a summary of what was suppressed", async () => {
  const bed = new Bed(1);
  bed.start();
  bed.begin(3);
  bed.events.merge([], 4);
  bed.clock.advance(250);
  await bed.settle("written", 1);
  bed.clock.advance(10_000);
  await bed.settle("written", 2);
  assertEquals(bed.sent[1]?.events, [{
    kind: "ratelimit.events_suppressed",
    data: {
      count: 6,
      from: "2026-01-01T00:00:00.000Z",
      to: "2026-01-01T00:00:10.250Z",
      maxPerSecond: 1,
    },
  }]);
  await bed.events.close();
});

Deno.test("operational events: the end sends the hits that were not reported, and waits two seconds at most", async () => {
  for (const isAnswered of [true, false]) {
    const bed = new Bed(1);
    bed.start();
    bed.begin(2);
    bed.clock.advance(250);
    await bed.settle("written", 1);
    bed.events.merge([{
      event: "over_limit",
      key: "key0",
      hits: 7,
      startedAt: START,
      endsAt: START + 60_000,
    }], 0);
    const closing = bed.events.close();
    await until("the last batch", () => bed.sent.length === 2);
    assertEquals(bed.sent[1]?.reports.map(({ hits }) => hits), [7]);
    assertEquals(bed.sent[1]?.events.map(({ data }) => data["count"]), [1]);
    if (isAnswered) await bed.settle("written", 2);
    else bed.clock.advance(2_000);
    await closing;
  }
});
