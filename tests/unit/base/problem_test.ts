import { assertEquals } from "#assert";
import { problemsInOrder } from "../../../src/base/problem.ts";

const CASES: readonly (readonly [name: string, found: readonly string[], order: readonly string[]])[] = [
  ["lines as numbers", ["a:10:1", "a:9:1"], ["a:9:1", "a:10:1"]],
  ["columns as numbers", ["a:1:10", "a:1:9"], ["a:1:9", "a:1:10"]],
  ["files first", ["b:1:1", "a:2:1", "B:3:1"], ["B:3:1", "a:2:1", "b:1:1"]],
  ["a file as a whole before its lines", ["d/a:1:1", "d/a", "d"], ["d", "d/a", "d/a:1:1"]],
  ["a colon in the name", ["c:2:1:10:1", "c:2:1:9:1"], ["c:2:1:9:1", "c:2:1:10:1"]],
  ["resources, which have no line", ['resource "b:9:1"', 'resource "a:1"'], [
    'resource "a:1"',
    'resource "b:9:1"',
  ]],
];

for (const [name, found, order] of CASES) {
  Deno.test(`problem order: ${name}`, () => {
    const problems = found.map((at) => ({ severity: "error" as const, at, path: "", text: "" }));
    assertEquals(problemsInOrder(problems).map(({ at }) => at), order);
  });
}

Deno.test("problem order: one place keeps the order in which its problems were found", () => {
  const problem = (severity: "error" | "warning", text: string) => {
    return { severity, at: "a:1:1", path: "", text };
  };
  const problems = [problem("warning", "z"), problem("error", "a"), problem("warning", "m")];
  assertEquals(problemsInOrder(problems), problems);
});
