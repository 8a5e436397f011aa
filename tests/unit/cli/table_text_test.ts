import { assertEquals } from "#assert";
import { isJsonObject, parseJson } from "../../../src/base/exact_json.ts";
import { JsonText } from "../../../src/base/json_text.ts";
import { asSent, recordLines } from "../../../src/cli/table_text.ts";

Deno.test("record text: objects are shown with their keys in the order of the response", () => {
  const json =
    '{"id":"a", "output": {"b": 1.10, "1": -0}, "steps":[{"n":1,"result":{"b":2,"0":[]}}], "none":null}';
  const record = parseJson(json);
  const lines = recordLines(asSent(isJsonObject(record) ? record : {}, new JsonText(json)));
  assertEquals(lines, [
    "id      a",
    'output  {"b":1.10,"1":-0}',
    "none    -",
    "",
    "steps:",
    "  n  result",
    '  1  {"b":2,"0":[]}',
  ]);
});

Deno.test("record text: each of several windows is a row, in place of the one of them that limits", () => {
  const one = { rule: "d.one", limit: 9, used: 1 };
  const [minute, day] = [{ rule: "d.k", limit: 3, used: 2 }, { rule: "d.k", limit: 5, used: 4 }];
  assertEquals(recordLines({ descriptors: [{ ...day, windows: [minute, day] }, one] }), [
    "descriptors:",
    "  rule   limit  used",
    "  d.k    3      2",
    "  d.k    5      4",
    "  d.one  9      1",
  ]);
});
