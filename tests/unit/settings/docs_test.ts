import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { settingsHelp, settingsTable, withSettingsTable } from "../../../src/settings/docs.ts";
import { GROUPS } from "../../../src/settings/setting.ts";
import { settingEntries } from "../../../src/settings/table.ts";

Deno.test("the README holds the table of settings as it is", async () => {
  const readme = await Deno.readTextFile(new URL("../../../README.md", import.meta.url));
  assertEquals(withSettingsTable(readme), readme, "scripts/readme_settings.ts brings it up to date");
});

Deno.test("the table has one row for each setting, and every group", () => {
  const lines = settingsTable().split("\n");
  const rows = lines.filter((line) => line.startsWith("| `")).map((line) => line.split("`")[1]);
  assertEquals(rows.sort(), settingEntries().map(([name]) => name as string).sort());
  assertEquals(lines.filter((line) => line.startsWith("### ")), GROUPS.map((group) => `### ${group}`));
});

Deno.test("every row has three cells", () => {
  const rows = settingsTable().split("\n").filter((line) => line.startsWith("|"));
  const cells = rows.map((row) => row.replaceAll("\\|", "").split("|").length - 2);
  assertEquals(cells, cells.map(() => 3));
});

const ROWS: readonly (readonly [what: string, row: string])[] = [
  ["a default", "| `PORT` | `8080` | The HTTP port; 0 takes a free one. |"],
  ["an empty default", "| `CACHE_KEY_PREFIX` | empty | Prefix of every cache key. |"],
  [
    "no default",
    "| `GRPC_UDS` | unset: TCP is used | Path of a unix socket on which gRPC is served instead of",
  ],
];

for (const [what, row] of ROWS) {
  Deno.test(`a row shows ${what}`, () => assertStringIncludes(settingsTable(), row));
}

Deno.test("the help is plain text with every setting under its group", () => {
  const help = settingsHelp();
  for (const [name] of settingEntries()) assertStringIncludes(help, `\n  ${name} (`);
  assertStringIncludes(help, "gRPC:\n  GRPC_HOST (0.0.0.0)\n      Interface of the gRPC port: a name,");
  assertEquals(help.includes("`"), false);
});

Deno.test("what stood between the markers gives way, the rest stays", () => {
  const filled = withSettingsTable("# A\n<!-- settings -->\nold\n<!-- /settings -->\nend\n");
  assertEquals(
    filled.startsWith("# A\n<!-- settings -->\n\n<!-- deno-fmt-ignore-start -->\n\n### Process\n"),
    true,
  );
  assertEquals(filled.endsWith(" |\n\n<!-- deno-fmt-ignore-end -->\n\n<!-- /settings -->\nend\n"), true);
  assertEquals(withSettingsTable(filled), filled);
});

for (const text of ["", "<!-- settings -->", "<!-- /settings --><!-- settings -->"]) {
  Deno.test(`a page without the two markers in order is refused: ${JSON.stringify(text)}`, () => {
    assertEquals(
      assertThrows(() => withSettingsTable(text)).message,
      'Cannot write the table of settings: expected "<!-- settings -->" before "<!-- /settings -->"',
    );
  });
}
