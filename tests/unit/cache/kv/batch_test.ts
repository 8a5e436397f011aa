import { assertEquals } from "@std/assert";
import type { Ask } from "../../../../src/cache/hit_batch.ts";
import { KvBatch } from "../../../../src/cache/kv/batch.ts";
import { KvExpiries } from "../../../../src/cache/kv/expiries.ts";
import { hit } from "../../../contract/counter_cache_contract.ts";
import { HitBatch } from "../../../../src/cache/hit_batch.ts";

/** What one caller with one hit is told when these are the answers to its commands. */
function toldOf(asking: boolean, addend: number, replies: readonly unknown[]): unknown {
  const batch = new KvBatch({ asking });
  let told: unknown;
  const ask: Ask = {
    hits: [hit({ addend })],
    counts: [],
    states: undefined,
    caller: undefined,
    resolve: (counts) => void (told = counts),
    reject: ({ states }) => void (told = states),
  };
  batch.add(ask);
  const expiries = new KvExpiries();
  assertEquals(batch.commands(expiries).replies, replies.length);
  batch.settle(replies, expiries);
  return told;
}

const MOVED = new Error("MOVED 3999 127.0.0.1:6381");
const ASK = new Error("ASK 3999 127.0.0.1:6381");
const FULL = new Error("OOM command not allowed when used memory > 'maxmemory'");

for (
  const [name, addend, asking, replies, told] of [
    ["counted, with its expiry", 2, false, [5, 1], [5]],
    ["not counted, because its key is elsewhere", 2, false, [MOVED, MOVED], [MOVED.message]],
    ["counted before its key moved away", 2, false, [5, MOVED], [5]],
    ["counted before its key began to move", 2, false, [5, ASK], [5]],
    ["counted, and its expiry refused", 2, false, [5, FULL], [FULL.message]],
    ["read only", 0, false, ["7"], [7]],
    ["given back", -2, false, [3], [3]],
    ["counted on the way to another node", 2, true, ["OK", 5, "OK", 1], [5]],
    ["read on the way to another node", 0, true, ["OK", null], [0]],
  ] as const
) {
  Deno.test(`kv batch: a hit that is ${name}`, () => assertEquals(toldOf(asking, addend, replies), told));
}

for (const reply of [null, -3, 1, 2 ** 53 + 2, "5", "text"] as const) {
  Deno.test(`kv batch: ${JSON.stringify(reply)} is no answer to INCRBY 2`, () => {
    assertEquals(toldOf(false, 2, [reply, 1]), [`it answered ${reply} to INCRBY 2`]);
  });
}

Deno.test("kv batch: an expiry that was answered before something was forgotten is not remembered", () => {
  const expiries = new KvExpiries();
  const [one, lost] = [batchOf("one"), batchOf("lost")];
  for (const batch of [one, lost]) assertEquals(batch.commands(expiries).replies, 2);
  assertEquals(lost.lose(expiries).map(({ key }) => key), ["lost"]);
  one.settle([1, 1], expiries);
  assertEquals([expiries.covers("one", 0), expiries.covers("lost", 0)], [false, false]);
});

Deno.test("kv batch: an expiry that follows its counter goes out first, and is to be confirmed once", () => {
  const expiries = new KvExpiries();
  const late = { key: "late", expiresInSeconds: 60, windowEnd: 100 };
  const batch = new KvBatch({ asking: false, late: [late] });
  batch.late.push({ ...late, key: "refused" }, { ...late, key: "second", isSecond: true });
  batch.add(askFor("hit"));
  const { text } = batch.commands(expiries);
  assertEquals([...text.matchAll(/late|refused|second|hit/g)].join(" "), "late refused second hit hit");
  const after = batch.settle([1, new Error("MOVED 1 127.0.0.1:1"), 1, 1, 1], expiries);
  const keys = (some: readonly { key: string }[]) => some.map(({ key }) => key);
  assertEquals([keys(after.follow), keys(after.retry), keys(after.confirm)], [[], ["refused"], ["late"]]);
  assertEquals(after.confirm[0]?.isSecond, true);
});

function batchOf(key: string): KvBatch {
  const batch = new KvBatch({ asking: false });
  batch.add(askFor(key));
  return batch;
}

function askFor(key: string): Ask {
  const hits = [hit({ key })];
  return { hits, counts: [], states: undefined, caller: undefined, resolve: () => {}, reject: () => {} };
}

Deno.test("hits of one key take the longest expiry among them", () => {
  for (const order of [[60, 3_600], [3_600, 60]]) {
    const batch = new HitBatch();
    const hits = order.map((seconds) => hit({ key: "k", expiresInSeconds: seconds, windowEnd: seconds }));
    batch.add({
      ...{ hits, counts: [], states: undefined, caller: undefined },
      ...{ resolve: () => {}, reject: () => {} },
    });
    assertEquals(
      batch.groups.map(({ total, expiresInSeconds, windowEnd }) => [total, expiresInSeconds, windowEnd]),
      [[2, 3_600, 3_600]],
    );
  }
});
