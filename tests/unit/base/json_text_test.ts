import { assert, assertEquals, assertThrows } from "#assert";
import { stringifyJson } from "../../../src/base/exact_json.ts";
import { JsonText, memberText, writeJson } from "../../../src/base/json_text.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

/** A text, the path of a value in it, and the text of that value; undefined where there is none. */
const VALUES: readonly (readonly [text: string, path: readonly string[], value: string | undefined])[] = [
  ['{"a":1}', [], '{"a":1}'],
  [' \n{"a" : 1.0 , "b":[ 1 , {"c" : "d"} ] }\t', ["b"], '[ 1 , {"c" : "d"} ]'],
  ['{"a" : 1.0 , "b":[ 1 , {"c" : "d"} ] }', ["b", "1", "c"], '"d"'],
  ['{"a" : 1.0 , "b":2}', ["a"], "1.0"],
  ['{"10":1,"2":2,"10":{"x":3}}', ["10"], '{"x":3}'],
  ['{"10":1,"2":2,"10":{"x":3}}', ["2"], "2"],
  ['{"__proto__":{"a":1}}', ["__proto__", "a"], "1"],
  ['{"a":1}', ["__proto__"], undefined],
  ['{"a":1}', ["constructor"], undefined],
  ['{"\\u0061\\"b":1}', ['a"b'], "1"],
  ['{"a":"x\\\\","b":"{\\"]}[","c":null}', ["c"], "null"],
  ['{"a":"x\\\\","b":"{\\"]}[","c":null}', ["b"], '"{\\"]}["'],
  ['{"":{"":[]}}', ["", ""], "[]"],
  ["[]", ["0"], undefined],
  ["{}", ["a"], undefined],
  ["[ [1,2] , 3 ]", ["0"], "[1,2]"],
  ["[ [1,2] , 3 ]", ["00"], undefined],
  ["[ [1,2] , 3 ]", ["length"], undefined],
  ["[-1e+5,true]", ["0"], "-1e+5"],
  ["[-1e+5,true]", ["1"], "true"],
  ['"text"', ["0"], undefined],
];

Deno.test("a value inside of a JSON text is the text that was sent", () => {
  for (const [text, path, value] of VALUES) {
    const found = path.reduce<JsonText | undefined>((one, key) => one?.get(key), new JsonText(text));
    assertEquals([text, path, found?.text], [text, path, value]);
  }
  assertEquals(memberText('{"data" : [1] }', "data"), "[1]");
  assert(assertThrows(() => memberText("{}", "data")) instanceof RangeError);
});

Deno.test("the members of a JSON text are in its order, the last of repeated keys", () => {
  const membersOf = (text: string) =>
    [...new JsonText(text).members].map(([key, value]) => [key, value.text]);
  assertEquals(membersOf('{ "b": 1.0, "10":[ ], "\\u0062":{"a":2} , "__proto__":null}'), [
    ["b", '{"a":2}'],
    ["10", "[ ]"],
    ["__proto__", "null"],
  ]);
  assertEquals(membersOf("[ -0 ,[1]]"), [["0", "-0"], ["1", "[1]"]]);
  for (const text of ["{}", "[ ]", "1", '"{}"']) assertEquals(membersOf(text), []);
});

Deno.test("a JSON text is written as it was sent, and inside of another value without its white space", () => {
  const text = '{ "b" : 1.10, "10": "\\u00e9 \\/ ", "2" :[ ], "10":null }';
  const sent = new JsonText(text);
  assertEquals(stringifyJson(sent), text);
  assertEquals(
    writeJson({ data: sent, list: [sent.get("2"), sent.get("b")], none: undefined }),
    '{"data":{"b":1.10,"10":"\\u00e9 \\/ ","2":[],"10":null},"list":[[],1.10]}',
  );
  assertEquals(writeJson({ a: 1, b: "c" }), '{"a":1,"b":"c"}');
});

Deno.test("every value of a random JSON text is found as it was written", () => {
  const random = seededRandom(20);
  for (let round = 0; round < 200; round++) {
    const { text, values } = randomValue(random, 0);
    for (const [path, value] of values) {
      const found = path.reduce<JsonText | undefined>((one, key) => one?.get(key), new JsonText(text));
      assertEquals(found?.text, value, text);
    }
  }
});

interface RandomValue {
  readonly text: string;
  readonly values: readonly (readonly [path: readonly string[], text: string])[];
}

const SCALARS = ["0", "-1.50", "1e400", "true", "null", '""', '"\\"{[,:"', '"\\\\"', '"\\u007d"', '"é"'];
const SPACES = ["", " ", "\n\t", "\r\n  "];

function randomValue(random: () => number, depth: number): RandomValue {
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
  const kind = depth > 3 ? "scalar" : pick(["scalar", "list", "object", "object"]);
  if (kind === "scalar") {
    const text = pick(SCALARS);
    return { text, values: [[[], text]] };
  }
  const children = Array.from({ length: Math.floor(random() * 5) }, () => randomValue(random, depth + 1));
  const keyOf = (index: number) => kind === "list" ? `${index}` : `${9 - index}${pick(["", "\\n", '"'])}`;
  const keyed = children.map((child, index) => ({ key: keyOf(index), child }));
  const items = keyed.map(({ key, child }) => {
    const name = kind === "list" ? "" : `${JSON.stringify(key)}${pick(SPACES)}:`;
    return `${pick(SPACES)}${name}${pick(SPACES)}${child.text}${pick(SPACES)}`;
  });
  const text = kind === "list" ? `[${items.join(",")}]` : `{${items.join(",")}}`;
  const values = keyed.flatMap(({ key, child }) =>
    child.values.map(([path, value]) => [[key, ...path], value] as const)
  );
  return { text, values: [[[], text], ...values] };
}
