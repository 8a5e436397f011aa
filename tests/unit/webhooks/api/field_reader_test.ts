import { assertEquals } from "#assert";
import { readFields } from "../../../../src/webhooks/api/field_reader.ts";
import { refusalOf } from "./refusal_fixture.ts";

const TEXT = { type: "text", words: "" } as const;

Deno.test("fields: texts hold no control characters", async () => {
  for (const text of ["a\0b", "a\nb", "\u001b[31mred", "a\u007f", "a\u0085b", "\t"]) {
    const problem = await refusalOf(() => readFields({ name: text }, { name: TEXT }));
    assertEquals([problem.status, problem.field, problem.detail], [
      422,
      "name",
      'Cannot use "name": expected a text without control characters',
    ]);
  }
  for (const text of ["", "größer 漢字 👍", " a "]) {
    assertEquals(readFields({ name: text }, { name: TEXT }), { name: text });
  }
});

Deno.test("fields: one that is not known is refused with those that are", async () => {
  const table = [
    [{ a: TEXT, b: TEXT }, 'Cannot use "x": unknown; expected a, b'],
    [{}, 'Cannot use "x": unknown; expected no fields'],
  ] as const;
  for (const [known, detail] of table) {
    const problem = await refusalOf(() => readFields({ x: 1 }, known));
    assertEquals([problem.field, problem.detail], ["x", detail]);
  }
});
