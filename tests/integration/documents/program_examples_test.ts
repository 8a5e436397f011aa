/** Runs the `ts rest` blocks of the pages: a comment behind a statement is what the program prints there. */
import { assertEquals } from "#assert";
import { documentPages } from "../../harness/documents.ts";
import { ExamplePrograms } from "../../harness/example_programs.ts";
import { needs } from "../../harness/tools.ts";

for (const { path, blocks } of documentPages()) {
  const programs = blocks.filter(({ language, marks }) => language === "ts" && marks.includes("rest"));
  if (programs.length === 0) continue;

  Deno.test({
    ...needs(["openssl"], `${path}: the programs print the output in their comments`),
    async fn(test) {
      await using files = await ExamplePrograms.write(programs.map(({ text }) => text));
      await files.addAuthority();
      const { code, printed } = await files.run();
      for (const [index, { line, text }] of programs.entries()) {
        const expected = [...text.matchAll(/; \/\/ (.+)$/gm)].map(([, words]) => words);
        await test.step(`line ${line}`, () => assertEquals(printed[index], expected));
      }
      assertEquals(code, 0);
    },
  });

  Deno.test(`${path}: the programs pass the type check`, async () => {
    await using files = await ExamplePrograms.write(programs.map(({ text }) => text));
    assertEquals(await files.check(), { code: 0, lines: [] });
  });
}
