import { assertEquals } from "@std/assert";
import type { Ask } from "../../src/cache/hit_batch.ts";
import { type Expiries, KvBatch } from "../../src/cache/kv_batch.ts";
import { hit } from "../contract/counter_cache_contract.ts";

/** Remembers nothing. */
const NO_EXPIRIES: Expiries = { covers: () => false, remember: () => {}, forget: () => {} };

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
  assertEquals(batch.commands(NO_EXPIRIES).replies, replies.length);
  batch.settle(replies, NO_EXPIRIES);
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
