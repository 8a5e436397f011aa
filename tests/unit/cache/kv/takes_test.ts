import { assertEquals } from "#assert";
import { KvBatch } from "../../../../src/cache/kv/batch.ts";
import { KvExpiries } from "../../../../src/cache/kv/expiries.ts";
import { ReplyError } from "../../../../src/cache/kv/resp.ts";
import { Ask } from "../../../../src/cache/hit_batch.ts";
import { KvConditionalCounter } from "../../../../src/cache/kv/counters.ts";
import type { CountReceiver, StateHit } from "../../../../src/ratelimit/decision/counter_cache.ts";
import { sliceLimit } from "../../../../src/ratelimit/algorithms/slices.ts";
import { conditionalHit } from "../../../contract/conditional_counter_cases.ts";

const UNKNOWN = new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
const EXPIRIES = new KvExpiries();
const LIMIT = sliceLimit(10, 60_000);

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
      const at = this.told.push("nothing") - 1;
      const receiver: CountReceiver = {
        counted: (taken) => void (this.told[at] = typeof taken === "number" ? taken : taken.used),
        failed: (error) => void (this.told[at] = error instanceof Error ? error.message : error),
      };
      const options = { caller: { cancelled }, receiver, errorOf: (state: string) => new Error(state) };
      this.batch.add(new Ask(new KvConditionalCounter(one, () => {}), one.addend, options));
    }
  }

  /** Names of the commands with the addends of scripts, and how many replies they bring. */
  sent(batch = this.batch): readonly [string[], number] {
    const { data, replies } = batch.commands(EXPIRIES);
    const commands = new TextDecoder().decode(data).split(/^\*\d+\r\n/m).filter((text) => text !== "");
    return [
      commands.map((command) => {
        const [name = "", , , key = "", , , ...addends] = command.split("\r\n").filter((_, at) =>
          at % 2 === 1
        );
        return [name, key, ...addends].filter((text) => text !== "").join(" ");
      }),
      replies,
    ];
  }
}

/** The reply of a script to hits after which so many count. */
function replyOf(...used: readonly number[]): number[] {
  return used.flatMap((count) => [1, count, 10 - count, 0, 60_000]);
}

Deno.test("kv takes: hits of one key are one command, and each caller gets its part of the reply", () => {
  const bed = new Bed();
  bed.take([{ key: "a", addend: 2 }, { key: "b", addend: 1 }]);
  bed.take([{ key: "a", addend: -1 }, { key: "a", addend: 0 }]);
  bed.take([{ key: "a", limit: sliceLimit(9, 60_000) }]);
  assertEquals([bed.batch.size, bed.sent()], [3, [["EVALSHA a 2 -1 0", "EVALSHA b 1", "EVALSHA a 1"], 3]]);
  const { again } = bed.batch.answered([replyOf(2, 1, 1), replyOf(1), replyOf(2)], EXPIRIES);
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
    const { again } = bed.batch.answered(replies(replyOf(7), UNKNOWN), EXPIRIES);
    if (again === undefined) throw new Error("Nothing is sent again");
    assertEquals([bed.told, bed.sent(again)], [[7, "nothing", "nothing"], [
      [...before, "EVAL b 1 4"],
      asking ? 2 : 1,
    ]]);
    assertEquals(again.answered(replies(replyOf(1, 5)), EXPIRIES).again, undefined);
    assertEquals(bed.told, [7, 1, 5]);
  });

  Deno.test(`kv takes: a script that stays unknown, and a lost connection, fail only what they concern; asking ${asking}`, () => {
    for (const end of ["unknown", "lost"]) {
      const bed = new Bed({ asking });
      bed.take([{ key: "a" }, { key: "b" }]);
      bed.sent();
      const { again } = bed.batch.answered(replies(replyOf(7), UNKNOWN), EXPIRIES);
      if (end === "lost") again?.fail("lost");
      else again?.answered(replies(UNKNOWN), EXPIRIES);
      const state = end === "lost" ? "lost" : UNKNOWN.message;
      assertEquals(bed.told, [7, state]);
    }
  });
}

for (const reply of [null, 5, "text", [1, 2], [1, "2", 3, 4, 5], [1, -2, 3, 4, 5]] as const) {
  Deno.test(`kv takes: ${JSON.stringify(reply)} is no answer of a script`, () => {
    const bed = new Bed();
    bed.take([{ key: "a" }]);
    bed.sent();
    bed.batch.answered([reply], EXPIRIES);
    assertEquals(bed.told, [`it answered ${reply} to a script`]);
  });
}
