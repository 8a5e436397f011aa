import { assert, assertEquals } from "#assert";
import { callOf, readCommand } from "../../../src/cli/command.ts";
import { documentedCommands } from "../../../src/cli/commands.ts";
import { EXAMPLES } from "../../../src/cli/examples.ts";
import { ran, words } from "../../harness/administration_fixture.ts";

const { lone, groups } = documentedCommands();
/** `help` and `version` are read before all others, and show no usage. */
const COMMANDS = [...lone, ...groups.flatMap(({ commands }) => commands)]
  .filter(({ words }) => !/^(?:help|version)/.test(words));

for (const command of COMMANDS) {
  Deno.test(`the help of weir ${callOf(command)} has an example that the command takes`, async () => {
    const example = EXAMPLES[command.words];
    assert(example !== undefined);
    const given = readCommand(command, words(example.replace(/ < .*/, "")));
    assertEquals(given?.args.length, command.args.length);
    const required = Object.entries(command.flags).filter(([, flag]) =>
      "isRequired" in flag && flag.isRequired
    );
    for (const [name] of required) assert(example.includes(`--${name} `), `--${name} is required`);
    const { stdout } = await ran([...command.words.split(" "), "--help"]);
    assertEquals(stdout.split("\n")[1], `example: weir ${command.words} ${example}`.trimEnd());
  });
}

Deno.test("no example is of an unknown command", () => {
  const known = COMMANDS.map(({ words }) => words);
  assertEquals(Object.keys(EXAMPLES).filter((name) => !known.includes(name)), []);
});
