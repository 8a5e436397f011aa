import { assertEquals } from "#assert";
import { createHash } from "node:crypto";
import { keyEntries } from "../../../../src/ratelimit/rules/key_entries.ts";
import type { Entry } from "../../../../src/ratelimit/request.ts";

const entry = (key: string, value: string): Entry => ({ key, value });
const digest = (bytes: string | Uint8Array) => `~sha256_${createHash("sha256").update(bytes).digest("hex")}`;

Deno.test("key entries: up to 8,192 bytes they are those of the descriptor", () => {
  for (
    const value of ["", "a".repeat(8_191), "é".repeat(4_095), `${"a".repeat(8_188)}€`, "🦕".repeat(2_047)]
  ) {
    const entries = [entry("k", value)];
    assertEquals(keyEntries(entries) === entries, true, value.slice(0, 1));
  }
});

const A = "a".repeat(9_000);
const LONG: readonly (readonly [name: string, entries: readonly Entry[], expected: readonly Entry[]])[] = [
  ["a value", [entry("k", A)], [entry("k", "a".repeat(64) + digest(A))]],
  ["one byte too many", [entry("k", A.slice(0, 8_192))], [
    entry("k", "a".repeat(64) + digest(A.slice(0, 8_192))),
  ]],
  ["a key", [entry(A, "v")], [entry("a".repeat(64) + digest(A), "v")]],
  ["others up to 256 bytes stay", [entry("k", A), entry("l", "b".repeat(256)), entry("m", "c".repeat(257))], [
    entry("k", "a".repeat(64) + digest(A)),
    entry("l", "b".repeat(256)),
    entry("m", "c".repeat(64) + digest("c".repeat(257))),
  ]],
  ["a character is not cut", [entry("k", "€".repeat(3_000))], [
    entry("k", "€".repeat(21) + digest("€".repeat(3_000))),
  ]],
];
const BYTES: typeof LONG = [
  ["a byte", [entry("k", "caf\udce9"), entry("l", "plain")], [
    entry("k", `caf\\xe9${digest(Uint8Array.of(0x63, 0x61, 0x66, 0xe9))}`),
    entry("l", "plain"),
  ]],
  ["a key", [entry("\udcff", "v")], [entry(`\\xff${digest(Uint8Array.of(0xff))}`, "v")]],
  ["a text that looks the same", [entry("k", "\\xff")], [entry("k", "\\xff")]],
  ["a long start", [entry("k", "\udcff".repeat(300))], [
    entry("k", "\\xff".repeat(16) + digest(new Uint8Array(300).fill(0xff))),
  ]],
];

for (const [name, entries, expected] of [...LONG, ...BYTES]) {
  Deno.test(`key entries, long or not UTF-8: ${name}`, () => assertEquals(keyEntries(entries), expected));
}

Deno.test("key entries: texts that differ in one byte behind the start differ", () => {
  const texts = ["a", "b", "\udc80", "\udcff", "\udced\udcb3\udcbf"].map((end) => A + end);
  const keys = texts.map((text) => keyEntries([entry("k", text)])[0]?.value ?? "");
  assertEquals([new Set(keys).size, keys.every((key) => key.isWellFormed() && key.length < 256)], [5, true]);
});

Deno.test("key entries: a counted value is the same whatever the size of those that are not counted", () => {
  const value = "b".repeat(300);
  const [large, small] = [A, "a"].map((other) => keyEntries([entry("k", value), entry("l", other)], [0]));
  assertEquals([large?.[0], small?.[0]], [entry("k", value), entry("k", value)]);
  assertEquals(large?.[1], entry("l", "a".repeat(64) + digest(A)));
});

Deno.test("key entries: a value that looks like a hashed one is hashed", () => {
  const [hashed] = keyEntries([entry("k", A)]);
  const [again] = keyEntries([entry("k", hashed?.value ?? "")]);
  assertEquals(again, entry("k", "a".repeat(64) + digest(hashed?.value ?? "")));
});
