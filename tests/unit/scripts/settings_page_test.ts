import { assertEquals, assertStringIncludes } from "@std/assert";
import { settingsPage } from "../../../scripts/docs/settings_page.ts";
import { GROUPS } from "../../../src/settings/setting.ts";
import { settingEntries } from "../../../src/settings/table.ts";

Deno.test("the page has one row of three cells for each setting, and every group", () => {
  const lines = settingsPage().split("\n");
  const rows = lines.filter((line) => line.startsWith("| `"));
  assertEquals(
    rows.map((row) => row.split("`")[1]).sort(),
    settingEntries().map(([name]) => name as string).sort(),
  );
  assertEquals(rows.filter((row) => row.replaceAll("\\|", "").split("|").length !== 5), []);
  assertEquals(lines.filter((line) => line.startsWith("## ")), [
    "## How settings are read",
    ...GROUPS.map((group) => `## ${group}`),
  ]);
});

const ROWS: readonly (readonly [what: string, row: string])[] = [
  ["a default", "| `PORT` | `8080` | "],
  ["an empty default", "| `CACHE_KEY_PREFIX` | empty | "],
  ["the behaviour without a value", "| `GRPC_UDS` | unset: "],
];

for (const [what, row] of ROWS) {
  Deno.test(`a row shows ${what}`, () => assertStringIncludes(settingsPage(), row));
}
