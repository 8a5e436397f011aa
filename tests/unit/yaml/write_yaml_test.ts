import { assertEquals } from "#assert";
import { parse } from "yaml";
import { parseJson } from "../../../src/base/exact_json.ts";
import { JsonText } from "../../../src/base/json_text.ts";
import { writeYaml } from "../../../src/yaml/write_yaml.ts";

/** JSON texts, which YAML reads as the same values. */
const VALUES: Readonly<Record<string, string>> = {
  "scalars": '[null,true,false,0,-0,1.5,"","text","two words","a.b/c-d_e"]',
  "strings that look like another type":
    '["true","No","ON","y","null","~","1","1.5","1e3","0x1f",".inf","NaN","2026-01-31","12:30:00","=","<<"]',
  "strings that look like syntax":
    '["- a","a: b","a #b","#a","[a]","{a}","*a","&a","!a","|",">","%a","@a","`a","\\"a\\"","\'a\'","?","-","---","a:"]',
  "spaces and line breaks": '[" a","a ","a\\nb","\\n","\\ta","a\\r\\n"]',
  "characters that are not printed":
    '["\\u0000","\\u001b[31m","\\u007f","\\u0085","\\u2028","\\ufeff","\\ud800","😀","é"]',
  "empty values": '{"a":[],"b":{},"c":[[],{}],"":""}',
  "nested values":
    '{"a":{"b":[{"c":1,"d":[2,[3,{"e":[]}]]},"f"]},"g h":{"true":{"1":null}},"__proto__":{"x":1}}',
  "lists of lists": "[[[1,2],[]],[3,[4,[5]]]]",
};

for (const [name, json] of Object.entries(VALUES)) {
  Deno.test(`YAML text: ${name}`, () => {
    const text = writeYaml(parseJson(json));
    const read = parse(text, { schema: "core", version: "1.2" });
    assertEquals(JSON.stringify(read), JSON.stringify(JSON.parse(json)), text);
    // deno-lint-ignore no-control-regex
    assertEquals(/[\0-\x09\x0b-\x1f\x7f-\x9f\u2028\ufeff]/.test(text), false);
  });
}

Deno.test("YAML text: block style, and numbers with every digit", () => {
  const value = parseJson(
    '{"id":12345678901234567890,"price":1.10,"steps":[{"name":"one","at":["x"]},"two"],"none":{}}',
  );
  assertEquals(
    writeYaml(value),
    `id: 12345678901234567890
price: 1.10
steps:
  - name: one
    at:
      - x
  - two
none: {}`,
  );
});

Deno.test("YAML text: a text that was sent keeps the order of its keys", () => {
  const json = '{ "b": {"2": 1.10, "1": -0, "\\u0062": [ {"9":"x","a":[]}, true ], "none": {} } }';
  assertEquals(
    writeYaml(new JsonText(json)),
    `b:
  "2": 1.10
  "1": -0
  b:
    - "9": x
      a: []
    - true
  none: {}`,
  );
});
