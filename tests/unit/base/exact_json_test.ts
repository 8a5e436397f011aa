import { assert, assertEquals, assertRejects, assertThrows } from "#assert";
import { createHash } from "node:crypto";
import {
  bodyHash,
  canonicalJson,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  nestingProblem,
  parseJson,
  stringifyJson,
} from "../../../src/base/exact_json.ts";

const KEPT =
  ("12345678901234567890 -12345678901234567890 9007199254740993 1.10 1.0 0.10 -0 -0.0 0.0 1e400 -1e400 " +
    "1e2 1E2 1e+2 100e-2 1e-400 0.1000000000000000055511151231257827 123456789012345678901234567890.5").split(
      " ",
    );
const SAME = ("0 1 -1 7 1.5 -0.25 123456789012345 9007199254740992 9007199254740991 1e+21 1e-7 " +
  "5e-324").split(" ");

Deno.test("numbers that a double would change keep their digits, wherever they stand", () => {
  for (const text of KEPT) {
    const places = [text, `[${text}]`, `{"a":${text}}`, `{"a":{"b":[0,${text},"${text}"]}}`, `[\n${text}\t]`];
    for (const place of places) {
      assertEquals(stringifyJson(parseJson(place)), place.replaceAll(/\s/g, ""));
    }
    const value = parseJson(text);
    assert(isRawNumber(value), text);
    assertEquals([value.rawJSON, typeof value], [text, "object"]);
  }
});

Deno.test("numbers that a double keeps are numbers", () => {
  for (const text of SAME) {
    const [beside] = parseJson(`[${text}, 1.10]`) as readonly JsonValue[];
    assertEquals([parseJson(text), beside], [Number(text), Number(text)]);
    assertEquals(isRawNumber(parseJson(text)), false);
  }
});

Deno.test("an object that looks like a kept number is none", () => {
  const value = parseJson('{"rawJSON":"1.10"}');
  assertEquals([isRawNumber(value), stringifyJson(value)], [false, '{"rawJSON":"1.10"}']);
});

const ROUND_TRIPS: readonly (readonly [name: string, text: string, written?: string])[] = [
  ["a key __proto__", '{"__proto__":{"admin":true}}'],
  ["a key __proto__ with digits", '{"__proto__":{"__proto__":1.10},"a":1.0}'],
  ["a key __proto__ that is a number", '{"__proto__":1.10}'],
  ["other names of objects", '{"constructor":1,"hasOwnProperty":2.0,"toString":null,"toJSON":"x"}'],
  ["an empty key", '{"":{"":1.10}}'],
  ["of two equal keys the last", '{"a":1.10,"b":0,"a":2.50}', '{"a":2.50,"b":0}'],
  ["of two equal keys the last, an object", '{"a":1.10,"a":{"b":1.0}}', '{"a":{"b":1.0}}'],
  ["of two equal keys the last, a number", '{"a":{"b":1.0},"a":1.10}', '{"a":1.10}'],
  ["of two equal keys the last, a longer list", '{"a":[1.0],"a":[2.0,3.0]}', '{"a":[2.0,3.0]}'],
  ["lone surrogates", '["\\ud800","\\udc00\\ud800",1.10]'],
  ["a surrogate pair", '["\\ud83d\\ude00"]', '["😀"]'],
  ["controls", '["\\u0000\\n\\u2028"]', '["\\u0000\\n\u2028"]'],
  ["digits in texts", '["1.10","-0","[1.10]",", 1e400"]'],
  ["spaces", ' { "a" : [ 1.10 , true , null ] } ', '{"a":[1.10,true,null]}'],
  ["a text alone", '"a"'],
];

for (const [name, text, written = text] of ROUND_TRIPS) {
  Deno.test(`JSON is written as it was read: ${name}`, () => {
    assertEquals(stringifyJson(parseJson(text)), written);
    // With and without the reading that keeps digits.
    assertEquals(stringifyJson(parseJson(`[0.10,${text}]`)), `[0.10,${written}]`);
  });
}

Deno.test("a key __proto__ is an own property and changes nothing else", () => {
  for (const text of ['{"__proto__":{"admin":true}}', '{"__proto__":{"admin":true},"n":1.10}']) {
    const value = parseJson(text) as JsonObject;
    assertEquals(Object.hasOwn(value, "__proto__"), true);
    assertEquals(Object.getPrototypeOf(value) === Object.prototype, true);
    assertEquals([value.admin, "admin" in {}], [undefined, false]);
  }
});

Deno.test("the hash of what is no JSON is refused", async () => {
  assertEquals((await assertRejects(() => bodyHash("{"))).name, "SyntaxError");
});

Deno.test("what is no JSON is refused, with and without doubtful numbers", () => {
  const bad = [
    "",
    " ",
    "1.10 2.20",
    ...`{ [1.10 1. .5 01 +1 1e - NaN [1.10,] {'a':1.10} \ufeff{}`.split(" "),
  ];
  for (const text of bad) {
    assertEquals([text, assertThrows(() => parseJson(text)).name], [text, "SyntaxError"]);
  }
});

const CANONICAL: readonly (readonly [name: string, texts: readonly string[], canonical: string])[] = [
  [
    "order of keys",
    ['{"b":1,"a":{"d":2,"c":3}}', '{ "a": {"c":3, "d":2},\n"b":1 }'],
    '{"a":{"c":3,"d":2},"b":1}',
  ],
  ["keys that look like numbers", ['{"10":1,"9":2,"b":3}', '{"9":2,"b":3,"10":1}'], '{"10":1,"9":2,"b":3}'],
  [
    "keys by code unit",
    ['{"\ue000":1,"😀":2,"Z":3,"a":4}', '{"a":4,"Z":3,"\\ud83d\\ude00":2,"\\ue000":1}'],
    '{"Z":3,"a":4,"😀":2,"\ue000":1}',
  ],
  ["escapes", ['["\\u0061\\/"]', '["a/"]'], '["a/"]'],
  ["order of lists stays", ["[2, 1]"], "[2,1]"],
  ["digits", ['{"n":1.10}'], '{"n":1.10}'],
  ["other digits", ['{"n":1.1}'], '{"n":1.1}'],
  ["great numbers", ["[12345678901234567890]"], "[12345678901234567890]"],
  ["great numbers that a double takes for the same", ["[12345678901234567891]"], "[12345678901234567891]"],
  ["a sign of zero", ["[-0]"], "[-0]"],
  ["a key __proto__", ['{"a":1,"__proto__":{"c":1,"b":2.0}}'], '{"__proto__":{"b":2.0,"c":1},"a":1}'],
  ["equal keys", ['{"a":1,"a":2}', '{"a":2}'], '{"a":2}'],
  ["lone surrogates", ['["\\uD800"]', '["\\ud800"]'], '["\\ud800"]'],
  ["nothing in it", ["{ }"], "{}"],
  ["null and flags", ["[ null, true,false ]"], "[null,true,false]"],
];

for (const [name, texts, canonical] of CANONICAL) {
  Deno.test(`canonical JSON: ${name}`, async () => {
    assertEquals(texts.map((text) => canonicalJson(text)), texts.map(() => canonical));
    assertEquals(canonicalJson(canonical), canonical);
    assertEquals(texts.map((text) => canonicalJson([parseJson(text)])), texts.map(() => `[${canonical}]`));
    const hash = createHash("sha256").update(canonical).digest("hex");
    assertEquals(await Promise.all(texts.map(bodyHash)), texts.map(() => hash));
  });
}

const nested = (depth: number, open = "[", close = "]") => open.repeat(depth) + close.repeat(depth);
const TOO_DEEP = "the JSON is nested too deep; expected at most 64 levels";

const NESTED: readonly (readonly [name: string, text: string, problem: string | undefined])[] = [
  ["no nesting", "1", undefined],
  ["64 lists", nested(64), undefined],
  ["65 lists", nested(65), TOO_DEEP],
  ["64 objects", `${'{"a":'.repeat(63)}{}${"}".repeat(63)}`, undefined],
  ["65 objects", `${'{"a":'.repeat(64)}{}${"}".repeat(64)}`, TOO_DEEP],
  ["65 of both", `${'{"a":['.repeat(32)}{}${"]}".repeat(32)}`, TOO_DEEP],
  ["64 of both", `${'{"a":['.repeat(32)}0${"]}".repeat(32)}`, undefined],
  ["many next to each other", `[${"[],{},".repeat(1_000)}0]`, undefined],
  ["brackets in a text", `["${"[{".repeat(100)}"]`, undefined],
  ["brackets after an escaped quote", `["\\"${"[{".repeat(100)}"]`, undefined],
  ["brackets after an escaped backslash", `["\\\\",${nested(64)}]`, TOO_DEEP],
  ["brackets after three backslashes and a quote", `["\\\\\\"${"[".repeat(100)}"]`, undefined],
  ["brackets in a key", `{"${"{".repeat(100)}":0}`, undefined],
  ["a text without end", `["${"[".repeat(100)}`, undefined],
  ["half a million lists", nested(500_000), TOO_DEEP],
  ["a million opened and none closed", "[".repeat(1_000_000), TOO_DEEP],
  ["a million quotes", '"'.repeat(1_000_000), undefined],
  ["a million backslashes", `"${"\\".repeat(1_000_000)}"`, undefined],
  ["no JSON at all", "]]]]}}}}", undefined],
];

for (const [name, text, problem] of NESTED) {
  Deno.test(`nesting: ${name}`, () => assertEquals(nestingProblem(text, 64), problem));
}

Deno.test("a text nested as deep as it may be goes through everything", () => {
  const text = `${'{"a":['.repeat(31)}{"a":[1.10]}${"]}".repeat(31)}`;
  assertEquals(nestingProblem(text, 64), undefined);
  assertEquals([stringifyJson(parseJson(text)), canonicalJson(text)], [text, text]);
});

Deno.test("whatever is read is written so that it reads the same", () => {
  // The digits of every number of a list that holds many kinds of them.
  const numbers = [...KEPT, ...SAME];
  const text = JSON.stringify({ numbers: "#", more: { list: "#" } }).replaceAll('"#"', `[${numbers.join()}]`);
  const value: JsonValue = parseJson(text);
  assertEquals(stringifyJson(value), text);
  assertEquals(stringifyJson(parseJson(stringifyJson(value))), text);
});

Deno.test("the hash of a value is that of its text", async () => {
  for (const [name, text] of ROUND_TRIPS) {
    // A text alone is taken for JSON.
    const value = parseJson(`[${text}]`);
    assertEquals(await bodyHash(value), await bodyHash(`[ ${text} ]`), name);
  }
});

Deno.test("many numbers with kept digits are read in their places, next to strings that look like them", () => {
  const numbers = Array.from({ length: 3_000 }, (_, index) => `${index}.10`);
  const text = `{"a":[${numbers.join(",")}],"b":${JSON.stringify(numbers)},"2":1.0,"1":{"c":-0}}`;
  const written = `{"1":{"c":-0},"2":1.0,"a":[${numbers.join(",")}],"b":${JSON.stringify(numbers)}}`;
  assertEquals(stringifyJson(parseJson(text)), written);
});
