import { assertEquals } from "#assert";
import { KvExpiries, KvLateExpiries, type LateExpiry } from "../../../../src/cache/kv/expiries.ts";

const late = (key: string, windowEnd = 100): LateExpiry => ({ key, expiresInSeconds: 60, windowEnd });
const keys = (some: readonly LateExpiry[]) => some.map(({ key, windowEnd }) => `${key}:${windowEnd}`);

Deno.test("kv late expiries: owed ones are taken once, the latest of each key", () => {
  const expiries = new KvLateExpiries();
  expiries.owe([late("a"), late("b"), late("a", 200), late("b", 50)]);
  assertEquals([expiries.isOwed, keys(expiries.takeOwed(1)), keys(expiries.takeOwed())], [
    true,
    ["a:200"],
    ["b:100"],
  ]);
  assertEquals(expiries.isOwed, false);
});

Deno.test("kv late expiries: refused ones wait for the next sweep, owed ones only without a connection", () => {
  const expiries = new KvLateExpiries();
  expiries.refuse([late("refused")]);
  expiries.owe([late("owed")]);
  assertEquals(keys(expiries.sweep(true)), ["refused:100"]);
  assertEquals(keys(expiries.sweep(false)), ["owed:100"]);
});

Deno.test("kv late expiries: those that were set come again after five sweeps", () => {
  const expiries = new KvLateExpiries();
  expiries.confirm([late("set")]);
  const sweeps = Array.from({ length: 6 }, () => expiries.sweep(true).length);
  assertEquals(sweeps, [0, 0, 0, 0, 1, 0]);
});

Deno.test("kv late expiries: everything is taken at the end", () => {
  const expiries = new KvLateExpiries();
  expiries.owe([late("owed")]);
  expiries.refuse([late("refused")]);
  expiries.confirm([late("set")]);
  assertEquals(keys(expiries.takeAll()).sort(), ["owed:100", "refused:100", "set:100"]);
});

Deno.test("kv expiries: long keys are forgotten before they fill the memory, those of the next window first", () => {
  const expiries = new KvExpiries();
  const keys = Array.from({ length: 52 }, (_, number) => String(number).padStart(1_000_000, "k"));
  const first = keys[0] ?? "";
  expiries.remember("later", 200);
  for (const key of keys.slice(0, 51)) expiries.remember(key, 100);
  const seen = [expiries.covers(first, 100)];
  for (const key of keys) expiries.remember(key, 100);
  seen.push(expiries.covers(first, 100), expiries.covers("later", 200));
  expiries.remember(first, 100);
  expiries.forget(first);
  for (const key of keys.slice(1)) expiries.remember(key, 100);
  seen.push(expiries.covers(keys[1] ?? "", 100));
  assertEquals(seen, [true, false, true, true]);
});
