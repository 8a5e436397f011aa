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
