import { assert, assertEquals } from "@std/assert";
import { joinRuns, type TestRun } from "../../../scripts/test/join_runs.ts";
import { slowestLines, startedByImports } from "../../../scripts/test/slowest.ts";
import { PLACES, planTests, testFiles } from "../../../scripts/test/test_groups.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("a plan of tests deals files out by their names, and leaves unknown ones to the rest", () => {
  const plan = planTests([
    "src/rest/mod_test.ts",
    "tests/base/wait_test.ts",
    "tests/integration/fleet_fairness_test.ts",
    "tests/integration/fleet_kill_test.ts",
    "tests/integration/grpc_test.ts",
    "tests/integration/settings_test.ts",
    "tests/webhooks/postgres_store_test.ts",
  ]);
  const alone = ["tests/integration/fleet_fairness_test.ts"];
  const webhooks = ["tests/integration/fleet_kill_test.ts", "tests/webhooks/postgres_store_test.ts"];
  assertEquals(plan, {
    beside: [
      { name: "rest", places: PLACES, ignored: [...alone, ...webhooks] },
      { name: "webhooks", places: webhooks, ignored: [] },
    ],
    after: [{ name: "alone", places: alone, ignored: [] }],
  });
  const rest = { name: "rest", places: PLACES, ignored: [] };
  assertEquals(planTests(["tests/new/thing_test.ts"]), { beside: [rest], after: [] });
});

Deno.test("every file of tests is run once", () => {
  const files = testFiles(ROOT);
  const { beside: [rest, ...others], after } = planTests(files);
  const named = [...others, ...after].flatMap(({ places }) => places);
  assertEquals(named.toSorted(), rest?.ignored.toSorted());
  assertEquals(new Set(named).size, named.length);
  assert(files.includes("tests/unit/scripts/test_task_test.ts"), "the files are found");
  assertEquals(named.filter((file) => !files.includes(file)), []);
  assert([...others, ...after].every(({ places }) => places.length > 1), "each group has files");
});

const GOOD: TestRun = { name: "good", code: 0, report: { passed: 3, failed: [], skipped: ["s"] } };
const BAD: TestRun = { name: "bad", code: 1, report: { passed: 1, failed: ["f"], skipped: [] } };
const CUT: TestRun = { name: "cut", code: 137, report: { passed: 0, failed: [], skipped: [] } };
const BARE: TestRun = { name: "bare", code: 0, report: { passed: 0, failed: [], skipped: [] } };
const OUTSIDE = 'the runner of "cut" ended with code 137';

const SUMS: readonly (readonly [name: string, runs: TestRun[], passed: number, failed: string[]])[] = [
  ["two that ran", [GOOD, BAD], 4, ["f"]],
  ["one that was cut off beside one that is fine", [GOOD, CUT], 3, [OUTSIDE]],
  ["one that was cut off beside one with a failure", [BAD, CUT], 1, ["f", OUTSIDE]],
  ["one that ran nothing", [GOOD, BARE], 3, ['no test of "bare" ran']],
];

for (const [name, runs, passed, failed] of SUMS) {
  Deno.test(`the sum of runs: ${name}`, () => {
    const skipped = runs.includes(GOOD) ? ["s"] : [];
    assertEquals(joinRuns(runs, { empty: false }), { passed, failed, skipped });
  });
}

Deno.test("the sum of runs: with a filter one of them may be empty", () => {
  assertEquals(joinRuns([GOOD, BARE], { empty: true }), GOOD.report);
});

Deno.test("the slowest files and tests are named with what they start", () => {
  const times = [
    { file: "./a_test.ts", name: "one", seconds: 1 },
    { file: "./b_test.ts", name: "two", seconds: 2.25 },
    { file: "./a_test.ts", name: "three", seconds: 3 },
  ];
  assertEquals(slowestLines(times, (file) => file === "./a_test.ts" ? ["redis-server"] : []), [
    "slowest files of 2, 6 s in all:",
    "    4.0 s  ./a_test.ts (redis-server)",
    "    2.3 s  ./b_test.ts",
    "slowest tests of 3:",
    "    3.0 s  ./a_test.ts: three",
    "    2.3 s  ./b_test.ts: two",
    "    1.0 s  ./a_test.ts: one",
  ]);
  const started = startedByImports(ROOT);
  const seen = ["./tests/integration/program/envoy_test.ts", "./tests/unit/base/wait_test.ts", "./no_file.ts"]
    .map(
      started,
    );
  assertEquals(seen.map((names) => names.includes("Envoy")), [true, false, false]);
});
