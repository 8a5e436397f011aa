import { assertEquals } from "@std/assert";
import { EMPTY_REPORT, judge, readTestReport, readTestTimes } from "../../harness/test_report.ts";

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
    skipped: ["waits (./a_test.ts)"],
  });
});

Deno.test("readTestReport shows the begin of a long error in one line", () => {
  const failure = `<failure message="Expected&#10;  ${"x".repeat(1_000)}"/>`;
  const report = readTestReport(`<testcase name="a" classname="./a_test.ts">${failure}</testcase>`);
  assertEquals(report.failed, [{ name: "a", file: "./a_test.ts", reason: `Expected ${"x".repeat(391)}…` }]);
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

Deno.test("readTestReport finds nothing in an empty text", () => {
  assertEquals(readTestReport(""), EMPTY_REPORT);
});

const A = { name: "a", file: "./a_test.ts", reason: "no" };
const UNSTABLE = "unstable: a (./a_test.ts): no";

const VERDICTS = [
  {
    name: "one unstable",
    report: { passed: 3, failed: [], unstable: [A], skipped: [] },
    end: { code: 0, strict: true },
    verdict: { ok: true, lines: [UNSTABLE, "3 passed, 0 failed"] },
  },
  {
    name: "two unstable",
    report: { passed: 3, failed: [], unstable: [A, A], skipped: [] },
    end: { code: 0, strict: false },
    verdict: { ok: true, lines: [UNSTABLE, UNSTABLE, "3 passed, 0 failed"] },
  },
  {
    name: "two unstable where one may be",
    report: { passed: 3, failed: [], unstable: [A, A], skipped: [] },
    end: { code: 0, strict: true },
    verdict: {
      ok: false,
      lines: [
        UNSTABLE,
        UNSTABLE,
        "failed: 2 unstable, and at most 1 may be with CI=true",
        "3 passed, 2 failed",
      ],
    },
  },
  {
    name: "all passed",
    report: { passed: 3, failed: [], unstable: [], skipped: [] },
    end: { code: 0, strict: false },
    verdict: { ok: true, lines: ["3 passed, 0 failed"] },
  },
  {
    name: "one failed",
    report: { passed: 3, failed: [A], unstable: [], skipped: [] },
    end: { code: 1, strict: false },
    verdict: { ok: false, lines: ["failed: a (./a_test.ts): no", "3 passed, 1 failed"] },
  },
  {
    name: "one failed although the runner ended well",
    report: { passed: 3, failed: [A], unstable: [], skipped: [] },
    end: { code: 0, strict: true },
    verdict: { ok: false, lines: ["failed: a (./a_test.ts): no", "3 passed, 1 failed"] },
  },
  {
    name: "one skipped",
    report: { passed: 3, failed: [], unstable: [], skipped: ["a"] },
    end: { code: 0, strict: false },
    verdict: { ok: true, lines: ["skipped: a", "3 passed, 0 failed, 1 skipped"] },
  },
  {
    name: "one skipped where none may be",
    report: { passed: 3, failed: [], unstable: [], skipped: ["a"] },
    end: { code: 0, strict: true },
    verdict: {
      ok: false,
      lines: [
        "skipped: a",
        "failed: 1 skipped, and no test may be skipped with CI=true",
        "3 passed, 1 failed",
      ],
    },
  },
  {
    name: "an error outside of the tests",
    report: { passed: 3, failed: [], unstable: [], skipped: [] },
    end: { code: 1, strict: false },
    verdict: {
      ok: false,
      lines: ["failed: the test runner ended with code 1 outside of any test", "3 passed, 1 failed"],
    },
  },
  {
    name: "no report at all",
    report: EMPTY_REPORT,
    end: { code: 137, strict: false },
    verdict: {
      ok: false,
      lines: ["failed: the test runner ended with code 137 outside of any test", "0 passed, 1 failed"],
    },
  },
  {
    name: "no tests",
    report: EMPTY_REPORT,
    end: { code: 0, strict: false },
    verdict: { ok: false, lines: ["failed: no test ran", "0 passed, 1 failed"] },
  },
  {
    name: "nothing but skipped tests",
    report: { passed: 0, failed: [], unstable: [], skipped: ["a"] },
    end: { code: 0, strict: false },
    verdict: { ok: false, lines: ["skipped: a", "failed: no test ran", "0 passed, 1 failed, 1 skipped"] },
  },
];

for (const { name, report, end, verdict } of VERDICTS) {
  Deno.test(`judge on a run: ${name}`, () => {
    assertEquals(judge(report, end), verdict);
  });
}
