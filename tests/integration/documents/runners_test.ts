/** The runners of examples find examples that fail, and the one of `sh` blocks ends what they start. */
import { assertEquals } from "#assert";
import { ExamplePrograms } from "../../harness/example_programs.ts";
import { needsNamespaces, runBlocks } from "../../harness/example_shell.ts";

const README = new URL("../../../README.md", import.meta.url);

Deno.test({
  ...needsNamespaces("the blocks of a page share one shell, a network and a copy of the repository"),
  async fn() {
    const before = await Deno.readTextFile(README);
    const outcomes = await runBlocks([
      { line: 1, text: "NAME=value\ncd config\nsleep 7654321 &\nserver=$!\n" },
      { line: 2, text: 'echo "$NAME $(basename "$PWD")"\nkill $server\nwait $server\necho > ../README.md\n' },
      {
        line: 3,
        text:
          "sleep 7654321 &\ntail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '\nwc -c < ../README.md\nif false; then true; fi\n",
      },
    ]);
    assertEquals(outcomes.map(({ line, code }) => [line, code]), [[1, 0], [2, 0], [3, 0]]);
    assertEquals(outcomes.map(({ output }) => output.split("\n")), [[""], ["value config"], ["lo", "1"]]);
    assertEquals(await Deno.readTextFile(README), before);
    assertEquals(await commandLines("7654321"), []);
  },
});

Deno.test({
  ...needsNamespaces("a block ends with its first command that fails, and the blocks behind it are not run"),
  async fn() {
    const outcomes = await runBlocks([
      { line: 1, text: "true\n" },
      { line: 5, text: "echo before\nweir check no-such-folder\necho after\n" },
      { line: 9, text: "true\n" },
    ]);
    assertEquals(outcomes.map(({ line, code }) => [line, code]), [[1, 0], [5, 2]]);
    const [first, ...others] = outcomes[1]?.output.split("\n") ?? [];
    assertEquals([first, others.length > 0, others.includes("after")], ["before", true, false]);
  },
});

for (
  const [what, text] of [
    ["that ends the shell", "exit 0\n"],
    ["that does not end in time", "sleep 7654322\n"],
  ] as const
) {
  Deno.test({
    ...needsNamespaces(`a block ${what} has no exit code`),
    async fn() {
      const outcomes = await runBlocks([{ line: 1, text }, { line: 4, text: "true\n" }], {
        timeoutMs: 1_000,
      });
      assertEquals(outcomes, [{ line: 1, code: undefined, output: "" }]);
      assertEquals(await commandLines("7654322"), []);
    },
  });
}

Deno.test("a program with other output, or with an error of types, is found", async () => {
  await using programs = await ExamplePrograms.write(['console.log("a"); // b\n', "const a: string = 1;\n"]);
  const { code, printed } = await programs.run();
  assertEquals([code, printed], [0, [["a"], []]]);
  assertEquals((await programs.check()).code, 1);
});

/** The command lines of running processes with a word. */
async function commandLines(word: string): Promise<string[]> {
  const lines: string[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const line = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (line.includes(word)) lines.push(line.replaceAll("\0", " "));
  }
  return lines;
}
