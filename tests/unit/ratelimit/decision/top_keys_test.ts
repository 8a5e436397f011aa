import { assert, assertEquals } from "#assert";
import { TopKeys, type TopKeysOptions } from "../../../../src/ratelimit/decision/top_keys.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

const NOW = 1_700_000_000;
const OPTIONS: TopKeysOptions = { capacity: 4, maxKeyLength: 16, halvingSeconds: 100 };

function topKeys(options: Partial<TopKeysOptions> = {}): TopKeys {
  return new TopKeys({ ...OPTIONS, ...options });
}

function add(keys: TopKeys, text: string, hits = 1, nowSeconds = NOW): void {
  keys.add({ text, start: 0, end: text.length, hits, nowSeconds });
}

function shown(keys: TopKeys, limit = 100, nowSeconds = NOW): [string, number, number][] {
  return keys.top(limit, nowSeconds).map(({ key, count, errorAtMost }) => [key, count, errorAtMost]);
}

Deno.test("counts are exact while there is a place for every key, and the highest come first", () => {
  const keys = topKeys();
  assertEquals(shown(keys), []);
  for (const [text, hits] of [["a", 1], ["b", 5], ["c", 2], ["a", 1], ["d", 2]] as const) {
    add(keys, text, hits);
  }
  assertEquals(shown(keys), [["b", 5, 0], ["a", 2, 0], ["c", 2, 0], ["d", 2, 0]]);
  assertEquals(shown(keys, 2), [["b", 5, 0], ["a", 2, 0]]);
});

Deno.test("a new key takes the place of one with the lowest count, and its count as the error", () => {
  const keys = topKeys();
  for (const [text, hits] of [["a", 7], ["b", 5], ["c", 3], ["d", 2]] as const) add(keys, text, hits);
  add(keys, "e", 2);
  assertEquals(shown(keys), [["a", 7, 0], ["b", 5, 0], ["e", 4, 2], ["c", 3, 0]]);
  add(keys, "f");
  assertEquals(shown(keys), [["a", 7, 0], ["b", 5, 0], ["e", 4, 2], ["f", 4, 3]]);
  add(keys, "c");
  assertEquals(shown(keys), [["a", 7, 0], ["b", 5, 0], ["c", 5, 4], ["e", 4, 2]]);
});

Deno.test("a part of a text is its own key", () => {
  const keys = topKeys();
  for (const text of ["<one>", "(one)", "one"]) {
    const start = text.indexOf("one");
    keys.add({ text, start, end: start + 3, hits: 1, nowSeconds: NOW });
  }
  keys.add({ text: "oneone", start: 0, end: 6, hits: 1, nowSeconds: NOW });
  assertEquals(shown(keys), [["one", 3, 0], ["oneone", 1, 0]]);
});

Deno.test("a long key is cut, and keys that differ after the cut are counted together", () => {
  const keys = topKeys();
  for (const text of ["0123456789abcde", "0123456789abcdef", "0123456789abcdefg", "0123456789abcdef-other"]) {
    add(keys, text);
  }
  assertEquals(shown(keys), [["0123456789abcde…", 3, 0], ["0123456789abcde", 1, 0]]);
});

Deno.test("counts are halved with each period, and what is less than a half makes room", () => {
  const keys = topKeys();
  for (const [text, hits] of [["a", 8], ["b", 3], ["c", 2], ["d", 2], ["e", 1]] as const) {
    add(keys, text, hits);
  }
  assertEquals(shown(keys), [["a", 8, 0], ["b", 3, 0], ["e", 3, 2], ["d", 2, 0]]);
  assertEquals(shown(keys, 100, NOW + 99), shown(keys));
  assertEquals(shown(keys, 100, NOW + 100), [["a", 4, 0], ["b", 1.5, 0], ["e", 1.5, 1], ["d", 1, 0]]);
  assertEquals(shown(keys, 100, NOW + 300), [["a", 1, 0]]);
  add(keys, "f", 1, NOW + 300);
  assertEquals(shown(keys, 100, NOW + 300), [["a", 1, 0], ["f", 1, 0]]);
  assertEquals(shown(keys, 100, NOW + 10_000_000), []);
});

Deno.test("a clock that is set back halves once and goes on from there", () => {
  const keys = topKeys();
  add(keys, "a", 8);
  assertEquals(shown(keys, 100, NOW - 5_000), [["a", 4, 0]]);
  assertEquals(shown(keys, 100, NOW - 4_950), [["a", 4, 0]]);
  assertEquals(shown(keys, 100, NOW - 4_900), [["a", 2, 0]]);
});

/** Cases of many keys: floods, skewed ones, many that are alike. */
const STREAMS: readonly { name: string; keyOf: (random: () => number, index: number) => string }[] = [
  { name: "every key is new", keyOf: (_, index) => `new${index}` },
  { name: "few keys are most of it", keyOf: (random) => `k${Math.floor(1 / (random() + 1e-4))}` },
  { name: "all of 300 are alike", keyOf: (random) => `k${Math.floor(random() * 300)}` },
  { name: "each one comes twice in a row", keyOf: (_, index) => `k${index >> 1}` },
  {
    name: "one key is a tenth of a flood",
    keyOf: (_, index) => index % 10 === 0 ? "heavy" : `new${index}`,
  },
];

for (const { name, keyOf } of STREAMS) {
  Deno.test(`the bounds hold where ${name}`, () => {
    const random = seededRandom(7);
    const capacity = 32;
    const keys = topKeys({ capacity });
    const really = new Map<string, number>();
    let total = 0;
    for (let index = 0; index < 20_000; index++) {
      const key = keyOf(random, index);
      const hits = 1 + Math.floor(random() * 3);
      add(keys, key, hits);
      really.set(key, (really.get(key) ?? 0) + hits);
      total += hits;
    }
    const found = keys.top(1_000, NOW);
    assertEquals(found.length, Math.min(capacity, really.size));
    assertEquals(found.reduce((sum, { count }) => sum + count, 0), total);
    for (const { key, count, errorAtMost } of found) {
      const actual = really.get(key) ?? 0;
      assert(
        actual <= count && count - errorAtMost <= actual,
        `${key}: ${count} ± ${errorAtMost}, is ${actual}`,
      );
    }
    const names = new Set(found.map(({ key }) => key));
    const lost = [...really].filter(([key, count]) => count > total / capacity && !names.has(key));
    assertEquals(lost, []);
    assert(found.every(({ errorAtMost }) => errorAtMost <= total / capacity));
  });
}

Deno.test("texts with the same hash keep their own counts", () => {
  // So many texts cannot have a slot each.
  const keys = topKeys({ capacity: 2_000 });
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 2_000; index++) add(keys, `key${index}`);
  }
  assert(keys.top(2_000, NOW).every(({ count }) => count === 2));
});
