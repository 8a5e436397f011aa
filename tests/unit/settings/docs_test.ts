import { assertEquals, assertStringIncludes } from "#assert";
import { settingsHelp } from "../../../src/settings/docs.ts";
import { settingEntries } from "../../../src/settings/table.ts";

Deno.test("the help is plain text with every setting under its group", () => {
  const help = settingsHelp();
  for (const [name] of settingEntries()) assertStringIncludes(help, `\n  ${name} (`);
  assertStringIncludes(help, "gRPC:\n  GRPC_HOST (0.0.0.0)\n      ");
  assertEquals(help.includes("`"), false);
});
