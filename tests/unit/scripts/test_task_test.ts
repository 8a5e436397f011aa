import { assertEquals } from "@std/assert";
import { joinRuns, type TestRun } from "../../../scripts/test/join_runs.ts";
import { slowestLines, startedByImports } from "../../../scripts/test/slowest.ts";
import { planTests, testPlaces, UNIX_SOCKETS } from "../../../scripts/test/test_groups.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("a plan of tests: unit tests have neither the network nor processes", () => {
  const groups = planTests(2, [
    "src/rest/mod.ts",
    "tests/contract/kv_cache_test.ts",
    "tests/contract/memory_cache_test.ts",
    "tests/soak/outage_test.ts",
    "tests/tidy_test.ts",
    "tests/unit/base/wait_test.ts",
  ]);
  assertEquals(groups.map(({ name, places, isServed, jobs }) => ({ name, places, isServed, jobs })), [
    {
      name: "unit",
      isServed: false,
      jobs: 2,
      places: ["tests/tidy_test.ts", "tests/unit/base/wait_test.ts"],
    },
    {
      name: "integration",
      isServed: true,
      jobs: 6,
      places: ["tests/contract/memory_cache_test.ts", "tests/soak/outage_test.ts"],
    },
    {
      name: "unix sockets",
      isServed: true,
      jobs: 1,
      places: ["src/rest/mod.ts", "tests/contract/kv_cache_test.ts"],
    },
  ]);
  assertEquals(groups[0]?.permissions.filter((flag) => /all$|net|run|ffi/.test(flag)), []);
});

Deno.test("the places of tests: every tier, a folder, a file and examples", () => {
  const all = testPlaces(ROOT, []);
  const tiers = all.map((place) => place.split("/").slice(0, 2).join("/"));
  assertEquals([...new Set(tiers)].sort(), [
    "src/rest",
    "tests/contract",
    "tests/integration",
    "tests/tidy_test.ts",
    "tests/unit",
  ]);
  // A file that was moved would run in the wrong group.
  const alone = planTests(2, all).find(({ name }) => name === "unix sockets");
  assertEquals(UNIX_SOCKETS.filter((place) => alone?.places.includes(place) !== true), []);
  assertEquals(testPlaces(ROOT, ["src/rest", "tests/tidy_test.ts", "tests/unit/scripts"]).slice(0, 2), [
    "src/rest",
    "tests/tidy_test.ts",
  ]);
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
