import { assertEquals } from "@std/assert";
import type { Ask } from "../../../../src/cache/hit_batch.ts";
import type { KvConnection } from "../../../../src/cache/kv/connection.ts";
import { KvGathering } from "../../../../src/cache/kv/batcher.ts";
import type { Caller } from "../../../../src/ratelimit/counter_cache.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

/** A connection is only handed on here. */
const CONNECTION = {} as KvConnection;

/** Hits with this end of their window need no expiry. */
const WINDOW_END = 2e9;

/** A node whose batches are kept as their commands; with ASKING each key gets its expiry. */
class Bed {
  readonly clock = new FakeClock();
  readonly written: string[] = [];
  readonly failed: string[] = [];
  readonly gathering: KvGathering;
  free = true;
  inFlight = 0;
  refusal: string | undefined;
  unneeded = 0;

  constructor(windowMs = 0) {
    this.gathering = new KvGathering({
      windowMs,
      clock: this.clock,
      inFlight: () => this.inFlight,
      refusal: () => this.refusal,
      take: () => this.free ? CONNECTION : undefined,
      write: ({ batch }) => {
        const keys = batch.commands({
          generation: 0,
          covers: (_, end) => end <= WINDOW_END,
          remember() {},
          forget() {},
        }).text;
        const marks = [...keys.matchAll(/(EXPIRE\r\n\$\d+\r\n)?(key_\w+)/g)];
        const texts = marks.map(([, expire, key]) => expire === undefined ? key : `expire ${key}`);
        this.written.push(`${batch.asking ? "asking " : ""}${texts.join(" ")}`);
      },
      unneeded: () => void this.unneeded++,
    });
  }

  /** Asks for a hit; answers why it cannot be. */
  ask(
    name: string,
    { asking = false, caller }: { asking?: boolean; caller?: Caller } = {},
  ): string | undefined {
    const key = `key_${name}`;
    const ask: Ask = {
      hits: [{ key, addend: 1, windowEnd: WINDOW_END, expiresInSeconds: 60, perSecond: false }],
      counts: [],
      states: undefined,
      caller,
      resolve: () => {},
      reject: ({ states }) => void this.failed.push(`${key}: ${states}`),
    };
    return this.gathering.add(ask, asking);
  }
}

const late = (name: string) => ({ key: `key_${name}`, expiresInSeconds: 60, windowEnd: WINDOW_END + 1 });

/** To the end of a turn, when what gathered without a window is written. */
async function turn(): Promise<void> {
  await Promise.resolve();
}

Deno.test("kv gathering: what is asked for in one turn is one batch, and what goes with ASKING another", async () => {
  const bed = new Bed();
  bed.ask("a");
  bed.ask("x", { asking: true });
  bed.ask("b");
  assertEquals(bed.written, []);
  await turn();
  bed.ask("c");
  await turn();
  assertEquals(bed.written, ["key_a key_b", "asking key_x expire key_x", "key_c"]);
});

Deno.test("kv gathering: without a free connection it gathers on, and the older batch goes first", async () => {
  const bed = new Bed();
  bed.free = false;
  bed.ask("x", { asking: true });
  bed.clock.advance(1);
  bed.ask("a");
  await turn();
  bed.ask("b");
  await turn();
  bed.free = true;
  bed.gathering.writeDue();
  assertEquals(bed.written, ["asking key_x expire key_x", "key_a key_b"]);
});

Deno.test("kv gathering: a refusal is asked for where a batch begins, and takes nothing in", async () => {
  const bed = new Bed();
  bed.refusal = "no connection";
  assertEquals(bed.ask("a"), "no connection");
  bed.refusal = undefined;
  assertEquals(bed.ask("b"), undefined);
  bed.refusal = "no connection";
  assertEquals(bed.ask("c"), undefined);
  await turn();
  assertEquals([bed.written, bed.failed], [["key_b key_c"], []]);
});

Deno.test("kv gathering: behind three batches a small one is held back, for 5 ms or until it is large", async () => {
  const bed = new Bed();
  bed.inFlight = 3;
  bed.ask("a");
  await turn();
  bed.clock.advance(4);
  bed.ask("b");
  assertEquals(bed.written, []);
  bed.clock.advance(1);
  assertEquals([bed.written, bed.clock.waiting], [["key_a key_b"], 0]);
  bed.ask("c0");
  await turn();
  for (let key = 1; key < 64; key++) {
    assertEquals(bed.written.length, 1);
    bed.ask(`c${key}`);
  }
  assertEquals([bed.written[1]?.split(" ").length, bed.clock.waiting], [64, 0]);
});

Deno.test("kv gathering: with fewer batches under way nothing is held back", async () => {
  const bed = new Bed();
  bed.inFlight = 2;
  bed.ask("a");
  await turn();
  assertEquals([bed.written, bed.clock.waiting], [["key_a"], 0]);
});

Deno.test("kv gathering: callers who are gone leave the connection to others", async () => {
  const bed = new Bed();
  bed.ask("a", { caller: { gone: true } });
  await turn();
  assertEquals([bed.written, bed.unneeded], [[], 1]);
  bed.ask("b");
  await turn();
  assertEquals(bed.written, ["key_b"]);
});

Deno.test("kv gathering: only what waits for a connection fails where that is asked for", async () => {
  const bed = new Bed();
  bed.free = false;
  bed.ask("waits");
  await turn();
  bed.ask("gathers", { asking: true });
  bed.gathering.fail("none was free", "due");
  assertEquals(bed.failed, ["key_waits: none was free"]);
  bed.gathering.fail("it is closed", "all");
  assertEquals(bed.failed, ["key_waits: none was free", "key_gathers: it is closed"]);
  await turn();
  assertEquals([bed.written, bed.clock.waiting], [[], 0]);
});

Deno.test("kv gathering: expiries of a batch that failed go with the next plain one", () => {
  const bed = new Bed(10);
  bed.gathering.addExpiries([]);
  assertEquals(bed.clock.waiting, 0);
  bed.gathering.addExpiries([late("a")]);
  bed.gathering.fail("no connection", "all");
  bed.gathering.owe([late("b")]);
  bed.ask("x", { asking: true });
  bed.ask("c");
  bed.clock.advance(10);
  assertEquals(bed.written, ["asking key_x expire key_x", "expire key_a expire key_b key_c"]);
});
