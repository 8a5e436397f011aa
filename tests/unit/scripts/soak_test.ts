import { assert, assertEquals, assertThrows } from "#assert";
import { fileLines, readSoakOptions } from "../../../scripts/soak.ts";

const KNOWN = ["floods", "outage"];

Deno.test("soak: reads its arguments", () => {
  const files = ["tests/soak/floods_test.ts", "tests/soak/outage_test.ts"];
  const { seeds, ...rest } = readSoakOptions([], KNOWN);
  assertEquals(rest, { size: "full", files });
  assert(seeds.length === 1 && seeds.every((seed) => Number.isSafeInteger(seed) && seed > 0), `${seeds}`);
  assertEquals(readSoakOptions(["outage", "--seed", "3,2147483648", "--short"], KNOWN), {
    seeds: [3, 2_147_483_648],
    size: "short",
    files: files.slice(1),
  });
});

const REFUSED: readonly [args: string[], message: string][] = [
  [["--seed", "0"], 'Invalid --seed "0": expected integers from 1 to 2147483648'],
  [["--seed", "1,2.5"], 'Invalid --seed "2.5": expected integers from 1 to 2147483648'],
  [["--seed", "1,"], 'Invalid --seed "": expected integers from 1 to 2147483648'],
  [["--seed", "2147483649"], 'Invalid --seed "2147483649": expected integers from 1 to 2147483648'],
  [["flods"], 'Invalid NAME "flods": expected floods, outage'],
  [["--long"], "Unknown option '--long'"],
  [["--seed"], "Option '--seed <value>' argument missing"],
  [["--short=1"], "Option '--short' does not take an argument"],
];

for (const [args, message] of REFUSED) {
  Deno.test(`soak: refuses ${args.join(" ")}`, () => {
    const error = assertThrows(() => readSoakOptions(args, KNOWN));
    assert(error.message.startsWith(message), error.message);
  });
}

Deno.test("soak: counts the tests of each file", () => {
  const xml = `<testsuites><testsuite>
    <testcase name="good" classname="./a_test.ts" time="1.25"></testcase>
    <testcase name="bad" classname="./a_test.ts" time="0.5"><failure message="no">x</failure></testcase>
    <testcase name="bad &gt; step" classname="./a_test.ts" time="0.5"><failure message="no">x</failure></testcase>
    <testcase name="bad" classname="./b_test.ts" time="2"></testcase>
    <testcase name="left" classname="./b_test.ts" time="0"><skipped/></testcase>
  </testsuite></testsuites>`;
  assertEquals(fileLines(xml), [
    "./a_test.ts: 1 passed, 1 failed, 1.8 s",
    "./b_test.ts: 1 passed, 0 failed, 1 skipped, 2.0 s",
  ]);
});
