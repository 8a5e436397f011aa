import { assertEquals } from "#assert";
import { type Ask, HitBatch, SingleAsk } from "../../../../src/cache/hit_batch.ts";
import { KvBatch } from "../../../../src/cache/kv/batch.ts";
import { KvExpiries } from "../../../../src/cache/kv/expiries.ts";
import { ReplyError } from "../../../../src/cache/kv/resp.ts";
import { hit } from "../../../contract/counter_cache_contract.ts";
import { type Caller, type Hit, RepeatedHit } from "../../../../src/ratelimit/counter_cache.ts";

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
    ["counted beyond what is exact", 2, false, [2 ** 62, 1], [2 ** 53]],
    ["counted at the top", 2, false, [new ReplyError("ERR increment or decrement would overflow"), 1], [
      2 ** 53,
    ]],
    ["read only", 0, false, ["7"], [7]],
    ["given back", -2, false, [3], [3]],
    ["counted on the way to another node", 2, true, ["OK", 5, "OK", 1], [5]],
    ["read on the way to another node", 0, true, ["OK", null], [0]],
  ] as const
) {
  Deno.test(`kv batch: a hit that is ${name}`, () => assertEquals(toldOf(asking, addend, replies), told));
}

for (const reply of [null, -3, 1, "5", "text"] as const) {
  Deno.test(`kv batch: ${JSON.stringify(reply)} is no answer to INCRBY 2`, () => {
    assertEquals(toldOf(false, 2, [reply, 1]), [`it answered ${reply} to INCRBY 2`]);
  });
}

Deno.test("kv batch: hits of many callers that no server can add together are the most that it can", () => {
  const most = 2 ** 53;
  const batch = new KvBatch({ asking: false });
  const told: number[] = [];
  for (let call = 0; call < 2_000; call++) {
    const resolve = (counts: number[]) => void told.push(...counts);
    batch.add({ ...askFor("k"), hits: [hit({ key: "k", addend: most })], resolve });
  }
  const text = new TextDecoder().decode(batch.commands(new KvExpiries()).data);
  assertEquals(/INCRBY\r\n\$1\r\nk\r\n\$\d+\r\n(\d+)/.exec(text)?.[1], String(most));
  batch.settle([most, 1], new KvExpiries());
  assertEquals([told.length, told.every((count) => count >= most)], [2_000, true]);
});

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
  const text = new TextDecoder().decode(batch.commands(expiries).data);
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

/** The commands of a batch as text, without the marks of the protocol. */
function commandsOf(batch: KvBatch, expiries: KvExpiries): string {
  const { data, written } = batch.commands(expiries);
  const text = new TextDecoder().decode(data);
  written?.(data);
  return text.split("*").slice(1).map((command) => {
    return command.split("\r\n").filter((_, line) => line > 0 && line % 2 === 0).join(" ");
  }).join(", ");
}

/** Adds single hits to a batch; returns what becomes of each, by its position. */
function addSingles(batch: HitBatch, hits: readonly Hit[], callers: readonly Caller[] = []): unknown[] {
  const outcomes: unknown[] = hits.map(() => undefined);
  for (const [position, one] of hits.entries()) {
    const receiver = {
      counted: (count: number) => void (outcomes[position] = count),
      failed: (error: unknown) => void (outcomes[position] = error instanceof Error ? error.message : error),
    };
    const errorOf = ({ states }: { states: readonly string[] | undefined }) => new Error(states?.join(" "));
    batch.addOne(new SingleAsk(one, callers[position], receiver, errorOf));
  }
  return outcomes;
}

Deno.test("kv batch: a hit that is used again has the same commands, and its expiry once", () => {
  const expiries = new KvExpiries();
  for (const key of ["plain", `é${"long".repeat(40)}`]) {
    const one = new RepeatedHit(hit({ key, addend: 2, expiresInSeconds: 60 }));
    const commands: string[] = [];
    const send = (hits: readonly Hit[], replies: readonly unknown[]) => {
      const batch = new KvBatch({ asking: false });
      const outcomes = addSingles(batch, hits);
      commands.push(commandsOf(batch, expiries));
      batch.settle(replies, expiries);
      return outcomes;
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

Deno.test("kv batch: hits that are used again and others count in one sequence, and giving back ends a group", () => {
  const batch = new KvBatch({ asking: false });
  const expiries = new KvExpiries();
  const windowEnd = 100;
  for (const key of ["a", "b"]) expiries.remember(key, windowEnd);
  const [a, b] = [
    new RepeatedHit(hit({ key: "a", windowEnd })),
    new RepeatedHit(hit({ key: "b", windowEnd })),
  ];
  const outcomes = addSingles(batch, [a, b, a, hit({ key: "a", addend: -1 }), a, b]);
  assertEquals(batch.groups.map(({ key, total }) => [key, total]), [["a", 2], ["b", 1], ["a", -1], ["a", 1], [
    "b",
    1,
  ]]);
  batch.commands(expiries);
  batch.settle([12, 31, 11, 12, 32], expiries);
  assertEquals(outcomes, [11, 31, 12, 11, 12, 32]);
});

Deno.test("kv batch: single hits whose callers are gone are left out", () => {
  const batch = new KvBatch({ asking: false });
  const expiries = new KvExpiries();
  const one = new RepeatedHit(hit({ key: "k" }));
  const [waits, gone] = [{ cancelled: false }, { cancelled: true }];
  const outcomes = addSingles(batch, [one, one, one], [waits, gone, waits]);
  batch.dropGone();
  assertEquals([batch.isEmpty, commandsOf(batch, expiries)], [false, "INCRBY k 2, EXPIRE k 60"]);
  batch.settle([9, 1], expiries);
  assertEquals(outcomes, [8, "its caller is gone", 9]);
});
