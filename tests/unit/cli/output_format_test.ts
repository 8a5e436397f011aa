import { assertEquals } from "#assert";
import { callOf } from "../../../src/cli/command.ts";
import { documentedCommands } from "../../../src/cli/commands.ts";
import { ran } from "../../harness/administration_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const CONFIG = `${ROOT}config`;
/** Commands without a result. */
const NO_RESULT = ["serve", "completions", "help", "help settings", "version", "settings translate"];
const { lone, groups } = documentedCommands();
const COMMANDS = [...lone, ...groups.flatMap(({ commands }) => commands)]
  .filter(({ words }) => !NO_RESULT.includes(words));

async function run(...args: readonly string[]): Promise<[code: number, stdout: string, stderr: string]> {
  const { code, stdout, stderr } = await ran(args, { clock: new FakeClock() });
  return [code, stdout, stderr];
}

for (const command of COMMANDS) {
  Deno.test(`--output of weir ${callOf(command)}: an unknown format and two formats are wrong`, async () => {
    const args = [...command.words.split(" "), ...command.args.map(() => "x")];
    const [code, stdout, stderr] = await run(...args, "--output", "xml");
    assertEquals([code, stdout, stderr.split("\n")[0]], [
      2,
      "",
      `Invalid --output "xml": expected ${(command.formats ?? ["table", "json", "yaml"]).join(", ")}`,
    ]);
    const [second, , line] = await run(...args, "--json", "--output", "yaml");
    assertEquals([second, line.split("\n")[0]], [2, "Cannot use --json with --output yaml"]);
  });
}

Deno.test("--output: the result of a check", async () => {
  const [code, json, stderr] = await run("workflows", "check", `${CONFIG}/workflows`, "--output", "json");
  const result = {
    folder: `${CONFIG}/workflows`,
    valid: true,
    files: 1,
    workflows: 1,
    errors: 0,
    warnings: 0,
  };
  assertEquals([code, JSON.parse(json), stderr], [0, { ...result, problems: [] }, ""]);
  assertEquals(await run("workflows", "check", `${CONFIG}/workflows`, "--json"), [0, json, ""]);
  const [, table] = await run("workflows", "check", `${CONFIG}/workflows`, "--output", "table");
  assertEquals(table, `${CONFIG}/workflows: valid: 1 file, 1 valid workflow, 0 errors, 0 warnings\n`);
});

Deno.test("--output: problems are part of the result, and the exit code of a missing folder stays", async () => {
  const [code, yaml, stderr] = await run("check", "/nowhere", "--output", "yaml");
  assertEquals([code, stderr], [2, ""]);
  assertEquals(
    yaml,
    `folder: "/nowhere"
valid: false
files: 0
errors: 1
warnings: 0
problems:
  - severity: error
    at: "/nowhere"
    path: ""
    text: "Cannot read the folder of rule files: it does not exist; expected the folder of the rule files"
`,
  );
});

Deno.test("--output: several results are documents of YAML", async () => {
  const requests = await Deno.makeTempFile();
  const line = { time: 0, domain: "shop", descriptors: [{ entries: [{ key: "account", value: "bob" }] }] };
  await Deno.writeTextFile(requests, `${JSON.stringify(line)}\n`.repeat(7));
  const args = ["simulate", "--config", `${CONFIG}/rules`, "--requests", requests];
  const [, json] = await run(...args, "--output", "json");
  const [, yaml] = await run(...args, "--output", "yaml");
  const types = json.trimEnd().split("\n").map((text) => JSON.parse(text).type);
  assertEquals(types, ["overLimit", "overLimit", "summary"]);
  assertEquals(
    yaml.split("---\n").map((document) => document.split("\n")[0]),
    types.map((type) => `type: ${type}`),
  );
  await Deno.remove(requests);
});
