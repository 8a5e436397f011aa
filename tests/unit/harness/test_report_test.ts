import { assertEquals } from "#assert";
import {
  EMPTY_REPORT,
  judge,
  readTestReport,
  readTestTimes,
  type RunnerEnd,
  type TestReport,
} from "../../harness/test_report.ts";

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="6" failures="1" errors="1" time="0.095">
    <testsuite name="./a_test.ts" tests="4" disabled="1" errors="0" failures="1">
        <testcase name="passes" classname="./a_test.ts" time="0.000" line="1" col="6">
        </testcase>
        <testcase name="passes in short" classname="./a_test.ts" time="0.000"/>
        <testcase name="waits" classname="./a_test.ts" time="0.000" line="2" col="6">
            <skipped/>
        </testcase>
        <testcase name="fails &amp; &lt;x&gt; &#39;y&#x27; &quot;z&quot;" classname="./a_test.ts" time="0.001">
            <failure message="Uncaught Error: no">Error: &lt;skipped/&gt;
    at file:///a_test.ts:1:40</failure>
        </testcase>
    </testsuite>
    <testsuite name="./b_test.ts" tests="1" disabled="0" errors="1" failures="0">
        <testcase name="is cut off" classname="./b_test.ts" time="0.000" line="1" col="6">
            <error message="Cancelled"/>
        </testcase>
    </testsuite>
</testsuites>`;

Deno.test("readTestReport tells passed, failed and skipped tests apart", () => {
  assertEquals(readTestReport(REPORT), {
    passed: 2,
    failed: [
      { name: `fails & <x> 'y' "z"`, file: "./a_test.ts", reason: "Uncaught Error: no" },
      { name: "is cut off", file: "./b_test.ts", reason: "Cancelled" },
    ],
    unstable: [],
    skipped: [{ name: "waits", file: "./a_test.ts" }],
  });
});

Deno.test("readTestReport shows the begin of a long error in one line", () => {
  const failure = `<failure message="Expected&#10;  ${"x".repeat(1_000)}"/>`;
  const report = readTestReport(`<testcase name="a" classname="./a_test.ts">${failure}</testcase>`);
  assertEquals(report.failed, [{ name: "a", file: "./a_test.ts", reason: `Expected ${"x".repeat(391)}…` }]);
});

Deno.test("readTestReport names the file of a test that a helper registered", () => {
  const frames = `at file:///w/tests/harness/until.ts:9:1
    at async file:///w/tests/integration/base/a_test.ts:2:27
    at async fn (file:///w/tests/harness/tools.ts:1:3)`;
  const files = [frames, "at file:///w/tests/harness/until.ts:9:1"].map((stack) => {
    const failure = `<failure message="no">Error: no\n    ${stack}</failure>`;
    return readTestReport(`<testcase name="a" classname="./tests/harness/tools.ts">${failure}</testcase>`)
      .failed.map(({ file }) => file);
  });
  assertEquals(files, [["./tests/integration/base/a_test.ts"], ["./tests/harness/tools.ts"]]);
});

Deno.test("readTestTimes has a line for each test, and none for its steps", () => {
  const step = '<testcase name="waits &gt; a step" classname="./a_test.ts" time="2.000"/>';
  const times = readTestTimes(REPORT + step);
  assertEquals(times.map(({ name, seconds }) => [name.slice(0, 5), seconds]), [
    ["passe", 0],
    ["passe", 0],
    ["waits", 0],
    ["fails", 0.001],
    ["is cu", 0],
  ]);
});

const A = { name: "a", file: "./a_test.ts", reason: "no" };
const S = { name: "s", file: "./s_test.ts" };
const SKIPPED = "skipped: s (./s_test.ts)";
const UNSTABLE = "unstable: a (./a_test.ts): no";
const FAILED = "failed: a (./a_test.ts): no";

const NONE_SKIPPED = "failed: 1 skipped, and no test may be skipped with CI=true";
const OUTSIDE = (code: number) => `failed: the test runner ended with code ${code} outside of any test`;

/** A report, how its runner ended, and the lines of the verdict; the run passed where the last one has no failures. */
const VERDICTS: Readonly<
  Record<string, readonly [report: Partial<TestReport>, end: Partial<RunnerEnd>, lines: readonly string[]]>
> = {
  "all passed": [{ passed: 3 }, {}, ["3 passed, 0 failed"]],
  "one failed": [{ passed: 3, failed: [A] }, { code: 1 }, [FAILED, "3 passed, 1 failed"]],
  "one failed although the runner ended well": [{ passed: 3, failed: [A] }, {}, [
    FAILED,
    "3 passed, 1 failed",
  ]],
  "one unstable": [{ passed: 3, unstable: [A] }, { strict: true }, [UNSTABLE, "3 passed, 0 failed"]],
  "two unstable": [{ passed: 3, unstable: [A, A] }, {}, [UNSTABLE, UNSTABLE, "3 passed, 0 failed"]],
  "two unstable where one may be": [{ passed: 3, unstable: [A, A] }, { strict: true }, [
    ...[UNSTABLE, UNSTABLE, "failed: 2 unstable, and at most 1 may be with CI=true"],
    "3 passed, 2 failed",
  ]],
  "one skipped": [{ passed: 3, skipped: [S] }, {}, [SKIPPED, "3 passed, 0 failed, 1 skipped"]],
  "one skipped where none may be": [{ passed: 3, skipped: [S] }, { strict: true }, [
    ...[SKIPPED, NONE_SKIPPED, "3 passed, 1 failed"],
  ]],
  "an error outside of the tests": [{ passed: 3 }, { code: 1 }, [OUTSIDE(1), "3 passed, 1 failed"]],
  "no report at all": [{}, { code: 137 }, [OUTSIDE(137), "0 passed, 1 failed"]],
  "no tests": [{}, {}, ["failed: no test ran", "0 passed, 1 failed"]],
  "nothing but skipped tests": [{ skipped: [S] }, {}, [
    ...[SKIPPED, "failed: no test ran", "0 passed, 1 failed, 1 skipped"],
  ]],
};

for (const [name, [report, end, lines]] of Object.entries(VERDICTS)) {
  Deno.test(`judge on a run: ${name}`, () => {
    const verdict = judge({ ...EMPTY_REPORT, ...report }, { code: 0, strict: false, ...end });
    assertEquals(verdict, { ok: / 0 failed/.test(lines.at(-1) ?? ""), lines });
  });
}
