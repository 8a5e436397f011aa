import { assertEquals } from "#assert";
import { Ask } from "../../../../src/cache/hit_batch.ts";
import { KvWindowCounter } from "../../../../src/cache/kv/counters.ts";
import { KvBatch } from "../../../../src/cache/kv/batch.ts";
import { KvExpiries } from "../../../../src/cache/kv/expiries.ts";
import { ReplyError } from "../../../../src/cache/kv/resp.ts";
import { hit } from "../../../contract/counter_cache_contract.ts";
import type { Caller, CountReceiver, Hit } from "../../../../src/ratelimit/decision/counter_cache.ts";

/** The outcome of one caller with one hit when these are the answers to its commands. */
function toldOf(asking: boolean, addend: number, replies: readonly unknown[]): unknown {
  const batch = new KvBatch({ asking });
  const [told] = addAll(batch, [[counterOf(), addend]]);
  const expiries = new KvExpiries();
  assertEquals(batch.commands(expiries).replies, replies.length);
  batch.answered(replies, expiries);
  return told?.();
}

const MOVED = new Error("MOVED 3999 127.0.0.1:6381");
const ASK = new Error("ASK 3999 127.0.0.1:6381");
const OVERFLOW = new ReplyError("ERR increment or decrement would overflow");
const FULL = new Error("OOM command not allowed when used memory > 'maxmemory'");

for (
  const [name, addend, asking, replies, told] of [
    ["counted, with its expiry", 2, false, [5, 1], 5],
    ["not counted, because its key is elsewhere", 2, false, [MOVED, MOVED], MOVED.message],
    ["counted before its key moved away", 2, false, [5, MOVED], 5],
    ["counted before its key began to move", 2, false, [5, ASK], 5],
    ["counted, and its expiry refused", 2, false, [5, FULL], FULL.message],
    ["counted beyond what is exact", 2, false, [2 ** 62, 1], 2 ** 53 + 2],
    [
      "counted at the top",
      2,
      false,
      [OVERFLOW, 1],
      2 ** 53 + 2,
    ],
    ["read only", 0, false, ["7"], 7],
    ["given back", -2, false, [3], 3],
    ["counted on the way to another node", 2, true, ["OK", 5, "OK", 1], 5],
    ["read on the way to another node", 0, true, ["OK", null], 0],
  ] as const
) {
  Deno.test(`kv batch: a hit that is ${name}`, () => assertEquals(toldOf(asking, addend, replies), told));
}

for (const reply of [null, -3, 1, "5", "text"] as const) {
  Deno.test(`kv batch: ${JSON.stringify(reply)} is no answer to INCRBY 2`, () => {
    assertEquals(toldOf(false, 2, [reply, 1]), `it answered ${reply} to INCRBY 2`);
  });
}

Deno.test("kv batch: hits of many callers that no server can add together are the most that it can", () => {
  const most = 2 ** 53;
  const batch = new KvBatch({ asking: false });
  const told = addAll(batch, Array.from({ length: 2_000 }, () => [counterOf({ key: "k" }), most] as const));
  const text = new TextDecoder().decode(batch.commands(new KvExpiries()).data);
  assertEquals(/INCRBY\r\n\$1\r\nk\r\n\$\d+\r\n(\d+)/.exec(text)?.[1], String(most));
  batch.answered([most, 1], new KvExpiries());
  assertEquals(told.every((count) => Number(count()) >= most), true);
});

for (const large of [[2 ** 53], [2 ** 53 - 1], new Array<number>(200).fill(2 ** 53)]) {
  Deno.test(`kv batch: hits before ${large.length} of ${large[0]} count from what the counter had`, () => {
    for (
      const [reply, expected] of [[2 ** 53 + 100, [101, 102]], [OVERFLOW, [2 ** 53, 2 ** 53 + 2]]] as const
    ) {
      const batch = new KvBatch({ asking: false });
      const told = addAll(batch, [1, 1, ...large].map((hits) => [counterOf({ key: "k" }), hits] as const));
      const delta = Math.min(2 ** 53, 2 + (large[0] ?? 0));
      assertEquals(commandsOf(batch, new KvExpiries()).split(",")[0], `INCRBY k ${delta}`);
      batch.answered([reply, 1], new KvExpiries());
      assertEquals(told.slice(0, 2).map((count) => count()), [...expected]);
      assertEquals(told.slice(2).every((count) => Number(count()) >= 2 ** 53), true);
    }
  });
}

Deno.test("kv batch: an expiry that was answered before something was forgotten is not remembered", () => {
  const expiries = new KvExpiries();
  const [one, lost] = [batchOf("one"), batchOf("lost")];
  for (const batch of [one, lost]) assertEquals(batch.commands(expiries).replies, 2);
  assertEquals(lost.lose(expiries).map(({ key }) => key), ["lost"]);
  one.answered([1, 1], expiries);
  assertEquals([expiries.covers("one", 0), expiries.covers("lost", 0)], [false, false]);
});

Deno.test("kv batch: an expiry that follows its counter goes out first, and is to be confirmed once", () => {
  const expiries = new KvExpiries();
  const late = { key: "late", expiresInSeconds: 60, windowEnd: 100 };
  const batch = new KvBatch({ asking: false, late: [late] });
  batch.late.push({ ...late, key: "refused" }, { ...late, key: "second", isSecond: true });
  addAll(batch, [[counterOf({ key: "hit" }), 1]]);
  const text = new TextDecoder().decode(batch.commands(expiries).data);
  assertEquals([...text.matchAll(/late|refused|second|hit/g)].join(" "), "late refused second hit hit");
  const after = batch.answered([1, new Error("MOVED 1 127.0.0.1:1"), 1, 1, 1], expiries);
  const keys = (some: readonly { key: string }[]) => some.map(({ key }) => key);
  assertEquals([keys(after.follow), keys(after.retry), keys(after.confirm)], [[], ["refused"], ["late"]]);
  assertEquals(after.confirm[0]?.isSecond, true);
});

function batchOf(key: string): KvBatch {
  const batch = new KvBatch({ asking: false });
  addAll(batch, [[counterOf({ key }), 1]]);
  return batch;
}

function counterOf(part: Partial<Hit> = {}): KvWindowCounter {
  return new KvWindowCounter(hit(part), () => {});
}

/** Adds hits to a batch; returns what each caller has been told by now. */
function addAll(
  batch: KvBatch,
  takes: readonly (readonly [counter: KvWindowCounter, hits: number])[],
  callers: readonly Caller[] = [],
): (() => unknown)[] {
  return takes.map(([counter, hits], position) => {
    let told: unknown;
    const receiver: CountReceiver = {
      counted: (count) => void (told = count),
      failed: (error) => void (told = error instanceof Error ? error.message : error),
    };
    batch.add(
      new Ask(counter, hits, { caller: callers[position], receiver, errorOf: (state) => new Error(state) }),
    );
    return () => told;
  });
}

Deno.test("hits of one key take the longest expiry among them", () => {
  for (const order of [[60, 3_600], [3_600, 60]]) {
    const batch = new KvBatch({ asking: false });
    const counters = order.map((seconds) => {
      return counterOf({ key: "k", expiresInSeconds: seconds, windowEnd: seconds });
    });
    addAll(batch, counters.map((counter) => [counter, 1] as const));
    assertEquals(
      batch.groups.map(({ total, expiresInSeconds, windowEnd }) => [total, expiresInSeconds, windowEnd]),
      [[2, 3_600, 3_600]],
    );
  }
});

/** The commands of a batch as text, without the marks of the protocol. */
function commandsOf(batch: KvBatch, expiries: KvExpiries): string {
  const { data, written } = batch.commands(expiries);
  const text = new TextDecoder().decode(data);
  written?.(data);
  return text.split("*").slice(1).map((command) => {
    return command.split("\r\n").filter((_, line) => line > 0 && line % 2 === 0).join(" ");
  }).join(", ");
}

Deno.test("kv batch: a hit that is used again has the same commands, and its expiry once", () => {
  const expiries = new KvExpiries();
  for (const key of ["plain", `é${"long".repeat(40)}`]) {
    const one = counterOf({ key, expiresInSeconds: 60 });
    const commands: string[] = [];
    const send = (counters: readonly KvWindowCounter[], replies: readonly unknown[]) => {
      const batch = new KvBatch({ asking: false });
      const told = addAll(batch, counters.map((counter) => [counter, 2] as const));
      commands.push(commandsOf(batch, expiries));
      batch.answered(replies, expiries);
      return told.map((count) => count());
    };
    assertEquals(send([one], [2, 1]), [2]);
    assertEquals(send([one], [4]), [4]);
    assertEquals(send([one, one, one], [10]), [6, 8, 10]);
    // Another key is new, which proves nothing about this one.
    expiries.forget("other");
    assertEquals(send([one], [12]), [12]);
    // The cache may have lost everything.
    expiries.clear();
    assertEquals(send([one, one], [4, 1]), [2, 4]);
    assertEquals(commands, [
      `INCRBY ${key} 2, EXPIRE ${key} 60`,
      `INCRBY ${key} 2`,
      `INCRBY ${key} 6`,
      `INCRBY ${key} 2`,
      `INCRBY ${key} 4, EXPIRE ${key} 60`,
    ]);
  }
});

Deno.test("kv batch: a command that is kept adds at most what the server can, and its key stays whole", () => {
  const most = 2 ** 53;
  const expiries = new KvExpiries();
  const one = counterOf({ key: "key", expiresInSeconds: 60 });
  const commands = [1, 2, 1].map((callers) => {
    const batch = new KvBatch({ asking: false });
    addAll(batch, new Array(callers).fill([one, most]));
    return commandsOf(batch, expiries);
  });
  assertEquals(commands, new Array(3).fill(`INCRBY key ${most}, EXPIRE key 60`));
});

Deno.test("kv batch: hits that are used again and others count in one sequence, and giving back ends a group", () => {
  const batch = new KvBatch({ asking: false });
  const expiries = new KvExpiries();
  const windowEnd = 100;
  for (const key of ["a", "b"]) expiries.remember(key, windowEnd);
  const [a, b] = [counterOf({ key: "a", windowEnd }), counterOf({ key: "b", windowEnd })];
  const once = counterOf({ key: "a", windowEnd });
  const told = addAll(batch, [[a, 1], [b, 1], [a, 1], [once, -1], [a, 1], [b, 1]]);
  assertEquals(batch.groups.map(({ counter, total }) => [counter.key, total]), [
    ["a", 2],
    ["b", 2],
    ["a", -1],
    ["a", 1],
  ]);
  batch.commands(expiries);
  batch.answered([12, 32, 11, 12], expiries);
  assertEquals(told.map((count) => count()), [11, 31, 12, 11, 12, 32]);
});

Deno.test("kv batch: single hits whose callers are gone are left out", () => {
  const batch = new KvBatch({ asking: false });
  const expiries = new KvExpiries();
  const one = counterOf({ key: "k" });
  const [waits, gone] = [{ cancelled: false }, { cancelled: true }];
  const told = addAll(batch, [[one, 1], [one, 1], [one, 1]], [waits, gone, waits]);
  batch.dropGone();
  assertEquals([batch.isEmpty, commandsOf(batch, expiries)], [false, "INCRBY k 2, EXPIRE k 60"]);
  batch.answered([9, 1], expiries);
  assertEquals(told.map((count) => count()), [8, "its caller is gone", 9]);
});
