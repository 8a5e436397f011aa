import { assertEquals, assertStringIncludes } from "#assert";
import { cliPage } from "../../../scripts/docs/cli_page.ts";
import { documentedCommands } from "../../../src/cli/commands.ts";

const { lone, groups } = documentedCommands();

Deno.test("the section of each command or group describes its flags, unless they are shared", () => {
  const page = cliPage();
  const shared = flagsBetween(page, "## Administration commands", "### weir endpoints");
  const missing = [...lone.map((command) => ({ name: command.words, commands: [command] })), ...groups]
    .flatMap(({ name, commands }) => {
      const found = new Set([...shared, ...flagsBetween(page, `### weir ${name}\n`, "\n##")]);
      const flags = new Set(commands.flatMap((command) => Object.keys(command.flags)));
      return [...flags].filter((flag) => !found.has(flag)).map((flag) => `${name} --${flag}`);
    });
  assertEquals(missing, []);
});

const ROWS = [
  "| `--merge` | Allow several files to define the same domain (default `$MERGE_DOMAIN_CONFIG`). |",
  "| `--event KIND` | Kinds of events that the endpoint receives: a kind, a prefix such as `workflow.*`, or `*` (default `*`); may be repeated. |",
  "| `--timestamp SECONDS` | The same as `--header 'X-Svc-Timestamp: SECONDS'`. |",
  "With `HTTP_SERVER_USE_TLS=true`, the default URL is https.",
];

for (const row of ROWS) {
  Deno.test(`names of the code are code: ${row}`, () => assertStringIncludes(cliPage(), row));
}

function flagsBetween(page: string, start: string, end: string): string[] {
  const from = page.indexOf(start) + start.length;
  const part = page.slice(from, page.indexOf(end, from));
  return [...part.matchAll(/^\| `(?:-\w, )?--([a-z_-]+)/gm)].map(([, name = ""]) => name);
}
