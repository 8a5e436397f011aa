import { assertEquals, assertStringIncludes } from "#assert";
import { settingsPage } from "../../../scripts/docs/settings_page.ts";
import { GROUPS } from "../../../src/settings/setting.ts";

Deno.test("the page has every group", () => {
  const titles = settingsPage().split("\n").filter((line) => line.startsWith("## "));
  assertEquals(titles, ["## How settings are read", ...GROUPS.map((group) => `## ${group}`)]);
});

const ROWS: readonly (readonly [what: string, row: string])[] = [
  ["a default", "| `PORT` | `8080` | "],
  ["an empty default", "| `CACHE_KEY_PREFIX` | empty | "],
  ["the behaviour without a value", "| `GRPC_UDS` | unset: "],
];

for (const [what, row] of ROWS) {
  Deno.test(`a row shows ${what}`, () => assertStringIncludes(settingsPage(), row));
}
