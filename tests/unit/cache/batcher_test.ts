import { assertEquals } from "#assert";
import { Batcher } from "../../../src/cache/batcher.ts";
import { Ask, HitBatch, NodeCounter } from "../../../src/cache/hit_batch.ts";
import type { Caller } from "../../../src/ratelimit/decision/counter_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

function keysOf(batch: HitBatch | undefined): string {
  return batch?.groups.map(({ counter }) => counter.key).join(" ") ?? "none";
}

/** A node whose batches are kept as their keys. */
class Bed {
  readonly clock = new FakeClock();
  readonly written: string[] = [];
  readonly batcher: Batcher<Ask<NodeCounter>, HitBatch, string>;
  isFree = true;
  inFlight = 0;
  dropped = 0;

  constructor(windowMs = 0) {
    this.batcher = new Batcher<Ask<NodeCounter>, HitBatch, string>({
      windowMs,
      clock: this.clock,
      inFlight: () => this.inFlight,
      createBatch: () => new HitBatch(),
      take: () => this.isFree ? "a connection" : undefined,
      write: (batch) => void this.written.push(keysOf(batch)),
      dropped: () => void this.dropped++,
    });
  }

  /** Asks for a hit. */
  ask(key: string, caller?: Caller): void {
    const counter = new NodeCounter({ key, windowEnd: 2e9, expiresInSeconds: 60 });
    const receiver = { counted: () => {}, failed: () => {} };
    this.batcher.add(new Ask(counter, 1, { caller, receiver, errorOf: (state) => new Error(state) }));
  }
}

/** To the end of a turn, when what gathered without a window is written. */
async function turn(): Promise<void> {
  await Promise.resolve();
}

Deno.test("batcher: what is asked for in one turn is one batch", async () => {
  const bed = new Bed();
  bed.ask("a");
  bed.ask("b");
  assertEquals([bed.written, bed.batcher.startedAt], [[], bed.clock.elapsed()]);
  await turn();
  bed.ask("c");
  await turn();
  assertEquals([bed.written, bed.batcher.startedAt], [["a b", "c"], undefined]);
});

Deno.test("batcher: without a free connection it gathers on", async () => {
  const bed = new Bed();
  bed.isFree = false;
  bed.ask("a");
  await turn();
  bed.ask("b");
  bed.batcher.flush();
  bed.isFree = true;
  bed.batcher.flush();
  assertEquals(bed.written, ["a b"]);
});

Deno.test("batcher: behind three batches a small one is held back, for 5 ms or until it is large", async () => {
  const bed = new Bed();
  bed.inFlight = 3;
  bed.ask("a");
  await turn();
  bed.clock.advance(4);
  bed.ask("b");
  assertEquals(bed.written, []);
  bed.clock.advance(1);
  assertEquals([bed.written, bed.clock.waiting], [["a b"], 0]);
  bed.ask("c0");
  await turn();
  for (let key = 1; key < 64; key++) bed.ask(`c${key}`);
  // What is asked for in one turn stays together.
  bed.ask("c64");
  assertEquals(bed.written.length, 1);
  await turn();
  assertEquals([bed.written[1]?.split(" ").length, bed.clock.waiting], [65, 0]);
});

Deno.test("batcher: with fewer batches in flight nothing is held back", async () => {
  const bed = new Bed();
  bed.inFlight = 2;
  bed.ask("a");
  await turn();
  assertEquals([bed.written, bed.clock.waiting], [["a"], 0]);
});

Deno.test("batcher: callers that are gone leave the connection to others", async () => {
  const bed = new Bed();
  bed.ask("a", { cancelled: true });
  await turn();
  assertEquals([bed.written, bed.dropped], [[], 1]);
  bed.ask("b");
  await turn();
  assertEquals(bed.written, ["b"]);
});

Deno.test("batcher: only a batch that waits for a connection is given up where that is asked for", async () => {
  const bed = new Bed(10);
  bed.ask("a");
  assertEquals(bed.batcher.giveUp("due"), undefined);
  bed.isFree = false;
  bed.clock.advance(10);
  assertEquals([keysOf(bed.batcher.giveUp("due")), bed.clock.waiting], ["a", 0]);
  bed.ask("b");
  assertEquals([keysOf(bed.batcher.giveUp()), bed.clock.waiting], ["b", 0]);
  bed.isFree = true;
  await turn();
  assertEquals(bed.written, []);
});
