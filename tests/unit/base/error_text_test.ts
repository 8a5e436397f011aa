import { assertEquals } from "#assert";
import { errorText } from "../../../src/base/error_text.ts";

const TABLE: readonly (readonly [thrown: unknown, text: string])[] = [
  [new Error("it broke"), "it broke"],
  [new TypeError("", { cause: new Error("deeper") }), ""],
  ["a text", "a text"],
  [undefined, "undefined"],
  [null, "null"],
  [7, "7"],
];

for (const [thrown, text] of TABLE) {
  Deno.test(`errorText: what was thrown is ${Deno.inspect(thrown).split("\n")[0]}`, () => {
    assertEquals(errorText(thrown), text);
  });
}
