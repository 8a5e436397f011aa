import { assertEquals } from "#assert";
import { KvBatch } from "../../../../src/cache/kv/batch.ts";
import { KvExpiries } from "../../../../src/cache/kv/expiries.ts";
import { ReplyError } from "../../../../src/cache/kv/resp.ts";
import { Ask } from "../../../../src/cache/hit_batch.ts";
import { KvConditionalCounter } from "../../../../src/cache/kv/counters.ts";
import type { CountReceiver, StateHit } from "../../../../src/ratelimit/decision/counter_cache.ts";
import { sliceLimit } from "../../../../src/ratelimit/algorithms/slices.ts";
import type { Taken } from "../../../../src/ratelimit/algorithms/taken.ts";
import { conditionalHit } from "../../../contract/conditional_counter_cases.ts";

const UNKNOWN = new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
const EXPIRIES = new KvExpiries();
const LIMIT = sliceLimit(10, 60_000);
const NOW_US = 1_700_000_000_000_000;

/** A batch, and what its callers got by now. */
class Bed {
  readonly batch: KvBatch;
  readonly told: unknown[] = [];

  constructor({ asking = false } = {}) {
    this.batch = new KvBatch({ asking });
  }

  take(parts: readonly Partial<StateHit>[], cancelled = false): void {
    for (const part of parts) {
      const one = conditionalHit({ limit: LIMIT, ...part });
      this.#take(new KvConditionalCounter(one, () => {}), one.addend, cancelled);
    }
  }

  /** Takes one hit of each. */
  takeOf(counters: readonly KvConditionalCounter[]): void {
    for (const counter of counters) this.#take(counter, 1, false);
  }

  #take(counter: KvConditionalCounter, addend: number, cancelled: boolean): void {
    const at = this.told.push("nothing") - 1;
    const receiver: CountReceiver = {
      counted: (taken) => void (this.told[at] = typeof taken === "number" ? taken : taken.used),
      failed: (error) => void (this.told[at] = error instanceof Error ? error.message : error),
    };
    const options = { caller: { cancelled }, receiver, errorOf: (state: string) => new Error(state) };
    this.batch.add(new Ask(counter, addend, options));
  }

  /** Names of the commands with the keys of scripts and their addends, and how many replies they bring. */
  sent(batch = this.batch): readonly [string[], number] {
    const { data, replies } = batch.commands(EXPIRIES);
    const commands = new TextDecoder().decode(data).split(/^\*\d+\r\n/m).filter((text) => text !== "");
    return [
      commands.map((command) => {
        const [name = "", , count, ...args] = command.split("\r\n").filter((_, at) => at % 2 === 1);
        const keys = args.splice(0, Number(count));
        const [, ...addends] = args;
        const shown = keys.map((key) => {
          const [, own] = addends.splice(0, 2);
          return ` ${key} ${addends.splice(0, Number(own)).join(" ")}`;
        });
        return `${name}${shown.join(",")}`;
      }),
      replies,
    ];
  }
}

/** The reply of a script for counters of which so many hits counted before, in the newest slice. */
function replyOf(...used: readonly (number | null)[]): unknown[] {
  return [NOW_US, ...used.map((count) => count === null ? null : stateOf(count))];
}

/** A state of slices. */
function stateOf(used: number, inNewest = used): string {
  const state = new DataView(new ArrayBuffer(8 * 19));
  const index = Math.floor(NOW_US / LIMIT.sliceUs);
  state.setFloat64(0, index);
  state.setFloat64(8, used);
  state.setFloat64(8 * (2 + index % 17), inNewest);
  return String.fromCharCode(...new Uint8Array(state.buffer));
}

Deno.test("kv takes: hits of one key are one command, and each caller gets its part of the reply", () => {
  const bed = new Bed();
  bed.take([{ key: "a", addend: 2 }, { key: "b", addend: 1 }]);
  bed.take([{ key: "a", addend: -1 }, { key: "a", addend: 0 }]);
  bed.take([{ key: "a", limit: sliceLimit(9, 60_000) }]);
  assertEquals([bed.batch.size, bed.sent()], [3, [["EVALSHA a 2 -1 0", "EVALSHA b 1", "EVALSHA a 1"], 3]]);
  const { again } = bed.batch.answered([replyOf(null), replyOf(0), replyOf(1)], EXPIRIES);
  assertEquals([again, bed.told], [undefined, [2, 1, 1, 1, 2]]);
});

Deno.test("kv takes: cancelled callers are left out", () => {
  const bed = new Bed();
  bed.take([{ key: "a" }], true);
  bed.take([{ key: "a", addend: 3 }]);
  bed.batch.dropGone();
  assertEquals([bed.sent(), bed.told], [[["EVALSHA a 3"], 1], ["its caller is gone", "nothing"]]);
});

for (const asking of [false, true]) {
  const before = asking ? ["ASKING"] : [];
  const replies = (...list: readonly unknown[]) => list.flatMap((reply) => asking ? ["OK", reply] : [reply]);

  Deno.test(`kv takes: an unknown script is sent once, and only for what it would have counted; asking ${asking}`, () => {
    const bed = new Bed({ asking });
    bed.take([{ key: "a" }, { key: "b" }]);
    bed.take([{ key: "b", addend: 4 }]);
    bed.sent();
    const { again } = bed.batch.answered(replies(replyOf(6), UNKNOWN), EXPIRIES);
    if (again === undefined) throw new Error("Nothing is sent again");
    assertEquals([bed.told, bed.sent(again)], [[7, "nothing", "nothing"], [
      [...before, "EVAL b 1 4"],
      asking ? 2 : 1,
    ]]);
    assertEquals(again.answered(replies(replyOf(0)), EXPIRIES).again, undefined);
    assertEquals(bed.told, [7, 1, 5]);
  });

  Deno.test(`kv takes: a script that stays unknown, and a lost connection, fail only what they concern; asking ${asking}`, () => {
    for (const end of ["unknown", "lost"]) {
      const bed = new Bed({ asking });
      bed.take([{ key: "a" }, { key: "b" }]);
      bed.sent();
      const { again } = bed.batch.answered(replies(replyOf(6), UNKNOWN), EXPIRIES);
      if (end === "lost") again?.fail("lost");
      else again?.answered(replies(UNKNOWN), EXPIRIES);
      const state = end === "lost" ? "lost" : UNKNOWN.message;
      assertEquals(bed.told, [7, state]);
    }
  });
}

for (const reply of [null, 5, "text", [], [1], ["1", null], [-1, null], [1, 2], [1, null, null]] as const) {
  Deno.test(`kv takes: ${JSON.stringify(reply)} is no answer of a script`, () => {
    const bed = new Bed();
    bed.take([{ key: "a" }]);
    bed.sent();
    bed.batch.answered([reply], EXPIRIES);
    assertEquals(bed.told, [`it answered ${reply} to a script`]);
  });
}

/** Counters that have had an outcome. */
function heldCounters(keys: readonly string[]): KvConditionalCounter[] {
  const counters = keys.map((key) =>
    new KvConditionalCounter(conditionalHit({ key, limit: LIMIT }), () => {})
  );
  const bed = new Bed();
  bed.takeOf(counters);
  assertEquals(bed.sent(), [keys.map((key) => `EVALSHA ${key} 1`), keys.length]);
  bed.batch.answered(keys.map(() => replyOf(null)), EXPIRIES);
  assertEquals(bed.told, keys.map(() => 1));
  return counters;
}

Deno.test("kv takes: counters that had an outcome are one call, except in a cluster and with another limit", () => {
  const counters = heldCounters(["a", "b", "c"]);
  const other = new KvConditionalCounter(
    conditionalHit({ key: "a", limit: sliceLimit(9, 60_000) }),
    () => {},
  );
  const bed = new Bed();
  bed.takeOf([...counters, ...counters.slice(1), other, ...counters.slice(0, 1)]);
  assertEquals(bed.sent(), [["EVALSHA a 1, b 1 1, c 1 1", "EVALSHA a 1", "EVALSHA a 1"], 3]);
  bed.batch.answered([replyOf(3, 1, 2), replyOf(4), replyOf(5)], EXPIRIES);
  assertEquals(bed.told, [4, 2, 3, 3, 4, 5, 6]);
  for (const [index, counter] of counters.entries()) counter.slot = index;
  const cluster = new Bed();
  cluster.takeOf(counters);
  assertEquals(cluster.sent(), [["EVALSHA a 1", "EVALSHA b 1", "EVALSHA c 1"], 3]);
});

Deno.test("kv takes: a call has at most 64 counters", () => {
  const counters = heldCounters(Array.from({ length: 70 }, (_, index) => `${index}`));
  const bed = new Bed();
  bed.takeOf(counters);
  const [commands, replies] = bed.sent();
  assertEquals([bed.batch.size, replies, commands.map((text) => text.split(",").length)], [70, 2, [64, 6]]);
});

Deno.test("kv takes: counters that a call leaves out are taken alone, and after three times always", () => {
  const counters = heldCounters(["a", "b"]);
  const [a, b] = counters;
  for (let time = 1; time <= 3; time++) {
    const bed = new Bed();
    bed.takeOf(counters);
    assertEquals(bed.sent(), [["EVALSHA a 1, b 1"], 1]);
    const { again } = bed.batch.answered([replyOf(1, null)], EXPIRIES);
    if (again === undefined) throw new Error("Nothing is sent again");
    assertEquals([bed.told, bed.sent(again)], [[2, "nothing"], [["EVALSHA b 1"], 1]]);
    assertEquals([again.answered([replyOf(null)], EXPIRIES).again, bed.told], [undefined, [2, 1]]);
  }
  const bed = new Bed();
  bed.takeOf(counters);
  assertEquals([bed.sent(), a?.leftOut, b?.leftOut], [[["EVALSHA a 1", "EVALSHA b 1"], 2], 0, 3]);
});

Deno.test("kv takes: a call that is refused is repeated for each counter alone", () => {
  const counters = heldCounters(["a", "b"]);
  const bed = new Bed();
  bed.takeOf(counters);
  bed.sent();
  const crossSlot = new ReplyError("CROSSSLOT Keys in request don't hash to the same slot");
  const { again } = bed.batch.answered([crossSlot], EXPIRIES);
  if (again === undefined) throw new Error("Nothing is sent again");
  assertEquals([bed.told, bed.sent(again)], [["nothing", "nothing"], [["EVALSHA a 1", "EVALSHA b 1"], 2]]);
  assertEquals(again.answered([replyOf(1), new ReplyError("WRONGTYPE")], EXPIRIES).again, undefined);
  assertEquals([bed.told, counters.map(({ leftOut }) => leftOut)], [[2, "WRONGTYPE"], [1, 1]]);
});

for (const used of [-Infinity, -2, NaN]) {
  Deno.test(`kv takes: a state that no script has written, with the sum ${used}, fails its own hits only`, () => {
    const counters = heldCounters(["a", "b"]);
    const bed = new Bed();
    bed.takeOf(counters);
    bed.sent();
    const { again } = bed.batch.answered([[NOW_US, stateOf(1), stateOf(used, 0)]], EXPIRIES);
    if (again === undefined) throw new Error("Nothing is sent again");
    assertEquals([bed.told, bed.sent(again)], [[2, "nothing"], [["EVALSHA b 1"], 1]]);
    assertEquals(again.answered([[NOW_US, stateOf(used, 0)]], EXPIRIES).again, undefined);
    assertEquals([bed.told[0], /^it answered .* to a script$/s.test(`${bed.told[1]}`)], [2, true]);
  });
}

Deno.test("kv takes: of a state with a sum and without hits, all is free after a window", () => {
  const bed = new Bed();
  const told: unknown[] = [];
  const counter = new KvConditionalCounter(conditionalHit({ key: "a", limit: LIMIT }), () => {});
  const receiver = { counted: (taken: unknown) => void told.push(taken), failed: () => {} };
  bed.batch.add(new Ask(counter, 0, { caller: undefined, receiver, errorOf: (state) => new Error(state) }));
  bed.sent();
  bed.batch.answered([[NOW_US, stateOf(5, 0)]], EXPIRIES);
  const [{ used, freeMs } = { used: 0, freeMs: -1 }] = told as Taken[];
  assertEquals([used, freeMs >= 0 && freeMs <= 60_000], [5, true], `${freeMs}`);
});
