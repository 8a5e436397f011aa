import { assertEquals, assertNotEquals, assertThrows } from "#assert";
import { joinRuns, type TestRun } from "../../../scripts/test/join_runs.ts";
import { type Repeater, repeatFailed } from "../../../scripts/test/repeat_failed.ts";
import { readStressOptions, shuffled } from "../../../scripts/test/stress.ts";
import { planTests, testPlaces } from "../../../scripts/test/test_groups.ts";
import { ALONE } from "../../../scripts/test/test_modules.ts";
import type { FailedTest, ReportedTest } from "../../harness/test_report.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

Deno.test("a plan of tests: unit tests have neither the network nor processes", () => {
  const groups = planTests(2, [
    "src/rest/mod.ts",
    "tests/contract/memory_cache_test.ts",
    "tests/integration/webhooks/postgres_connection_test.ts",
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
      places: [
        "tests/contract/memory_cache_test.ts",
        "tests/integration/webhooks/postgres_connection_test.ts",
        "tests/soak/outage_test.ts",
      ],
    },
    {
      name: "examples",
      isServed: true,
      jobs: 1,
      places: ["src/rest/mod.ts"],
    },
  ]);
  assertEquals(groups[0]?.flags.filter((flag) => /all$|net|run|ffi/.test(flag)), []);
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
  // A file that was moved would run in a module with others.
  assertEquals([...ALONE].filter((place) => !all.includes(place)), []);
  assertEquals(testPlaces(ROOT, ["src/rest", "tests/tidy_test.ts", "tests/unit/scripts"]).slice(0, 2), [
    "src/rest",
    "tests/tidy_test.ts",
  ]);
});

const F = failed("./tests/unit/a_test.ts", "f");
const S = { name: "s", file: "./tests/unit/a_test.ts" };
const GOOD: TestRun = {
  name: "good",
  code: 0,
  report: { passed: 3, failed: [], unstable: [], skipped: [S] },
};
const BAD: TestRun = { name: "bad", code: 1, report: { passed: 1, failed: [F], unstable: [], skipped: [] } };
const CUT: TestRun = { name: "cut", code: 137, report: { passed: 0, failed: [], unstable: [], skipped: [] } };
const BARE: TestRun = { name: "bare", code: 0, report: { passed: 0, failed: [], unstable: [], skipped: [] } };
const OUTSIDE = failed("", 'the runner of "cut" ended with code 137');

const SUMS: readonly (readonly [name: string, runs: TestRun[], passed: number, failed: FailedTest[]])[] = [
  ["two that ran", [GOOD, BAD], 4, [F]],
  ["one that was cut off next to one that is fine", [GOOD, CUT], 3, [OUTSIDE]],
  ["one that was cut off next to one with a failure", [BAD, CUT], 1, [F, OUTSIDE]],
  ["one that ran nothing", [GOOD, BARE], 3, [failed("", 'no test of "bare" ran')]],
];

for (const [name, runs, passed, failed] of SUMS) {
  Deno.test(`the sum of runs: ${name}`, () => {
    const skipped = runs.includes(GOOD) ? [S] : [];
    assertEquals(joinRuns(runs, { empty: false }), { passed, failed, unstable: [], skipped });
  });
}

Deno.test("the sum of runs: with a filter one of them may be empty", () => {
  assertEquals(joinRuns([GOOD, BARE], { empty: true }), GOOD.report);
});

const SUITE = "tests/contract/suite.ts";
const G = failed("./tests/unit/b_test.ts", "g");
const OF_SUITE = failed(`./${SUITE}`, "f");
const OF_HELPER = failed("./tests/harness/helper.ts", "h");
const STEP = failed(F.file, "f > step");
const RUNNER = failed("", "runner");
const ONLY_F = "--filter=/^(?:\\x66)$/";
const MANY = Array.from({ length: 13 }, (_, index) => failed(`./tests/unit/${index}_test.ts`, "f"));

/** The first failures, the repeated files, and what is failed and unstable then; only `G` fails again. */
const REPETITIONS: Readonly<
  Record<
    string,
    readonly [first: FailedTest[], asked: string[], failed: FailedTest[], unstable: FailedTest[]]
  >
> = {
  "nothing failed": [[], [], [], []],
  "one passes and one fails again": [
    [F, G],
    [`tests/unit/a_test.ts ${ONLY_F}`, "tests/unit/b_test.ts --filter=/^(?:\\x67)$/"],
    [G],
    [F],
  ],
  "a test and its step are repeated as one": [[STEP, F], [`tests/unit/a_test.ts ${ONLY_F}`], [], [STEP]],
  "a suite is repeated by the files that import it": [[OF_SUITE], [`${SUITE}_test.ts ${ONLY_F}`], [], [
    OF_SUITE,
  ]],
  "a test that a helper registers has the one file with its name": [
    [OF_HELPER],
    ["tests/unit/a_test.ts --filter=/^(?:\\x68)$/"],
    [],
    [failed(F.file, "h")],
  ],
  "what failed outside of a test is not repeated": [[RUNNER], [], [RUNNER], []],
  "many failures are believed": [MANY, [], MANY, []],
};

for (const [name, [first, asked, failed, unstable]] of Object.entries(REPETITIONS)) {
  Deno.test(`failed tests are repeated: ${name}`, async () => {
    const places = ["tests/unit/a_test.ts", "tests/unit/b_test.ts"];
    const group = { name: "unit", places, flags: [], isServed: false, jobs: 2, filesPerModule: 1 };
    const run = { name: "unit", code: 1, report: { passed: 3, failed: first, unstable: [], skipped: [] } };
    const seen: string[] = [];
    const placesOf = ({ file }: ReportedTest) => {
      if (file === OF_HELPER.file) return ["tests/unit/a_test.ts"];
      return file.endsWith(SUITE) ? [`${SUITE}_test.ts`, `${SUITE}_again_test.ts`] : [];
    };
    const runGroup: Repeater["runGroup"] = ({ places: [place = ""], name }, args) => {
      seen.push(`${place} ${args.join(" ")}`);
      const left = place === "tests/unit/b_test.ts" ? [G] : [];
      const passed = left.length === 0 ? 1 : 0;
      return Promise.resolve({
        name,
        code: left.length,
        report: { passed, failed: left, unstable: [], skipped: [] },
      });
    };
    const judged = await repeatFailed(run, group, { runGroup, placesOf });
    assertEquals(seen, asked);
    const passed = 3 + first.length - failed.length;
    assertEquals(judged.report, { passed, failed, unstable, skipped: [] });
  });
}

Deno.test("failed tests are repeated: with a test that hung go those that came after it", async () => {
  const places = ["tests/unit/a_test.ts", "tests/unit/b_test.ts"];
  const group = { name: "unit", places, flags: [], isServed: false, jobs: 2, filesPerModule: 1 };
  const [again, lacking] = [{ name: "again", file: S.file }, {
    name: "lacking",
    file: "./tests/unit/b_test.ts",
  }];
  const report = { passed: 3, failed: [F], unstable: [], skipped: [S, again, lacking] };
  const runGroup: Repeater["runGroup"] = ({ name, places: [place] }, args) => {
    const isFirst = place === places[0];
    assertEquals(args.length, 1);
    const [failed, skipped] = isFirst ? [[{ ...again, reason: "no" }], []] : [[], [lacking]];
    return Promise.resolve({
      name,
      code: isFirst ? 1 : 0,
      report: { passed: 2, failed, unstable: [], skipped },
    });
  };
  const run = { name: "unit", code: 130, report, isInterrupted: true };
  const judged = await repeatFailed(run, group, { runGroup, placesOf: () => [] });
  assertEquals(judged.report, { passed: 5, failed: [], unstable: [F], skipped: [again, lacking] });
  const left = { ...run, isInterrupted: false };
  const untouched = await repeatFailed({ ...left, report: { ...report, failed: [] } }, group, {
    runGroup,
    placesOf: () => [],
  });
  assertEquals(untouched.report, { ...report, failed: [] });
});

Deno.test("stress: bounds and seed are read, and the rest is passed on", () => {
  const args = ["tests/unit", "--rounds=3", "--minutes=2", "--seed=7", "--filter=x"];
  assertEquals(readStressOptions(args), {
    rounds: 3,
    minutes: 2,
    seed: 7,
    rest: ["tests/unit", "--filter=x"],
  });
  const { rounds, minutes } = readStressOptions([]);
  assertEquals([rounds, minutes], [10, 60]);
  const error = assertThrows(() => readStressOptions(["--rounds=0"]));
  assertEquals(error.message, 'Invalid --rounds "0": expected an integer from 1 to 2147483648');
});

Deno.test("stress: a seed decides the order, and nothing is lost", () => {
  const places = Array.from({ length: 50 }, (_, index) => index);
  assertEquals(shuffled(places, 1), shuffled(places, 1));
  assertNotEquals(shuffled(places, 1), shuffled(places, 2));
  assertEquals(shuffled(places, 1).sort((a, b) => a - b), places);
});

function failed(file: string, name: string): FailedTest {
  return { file, name, reason: "" };
}
