import { type FailedTest, topName } from "../../tests/harness/test_report.ts";
import type { TestRun } from "./join_runs.ts";
import type { TestGroup } from "./test_groups.ts";

/** With more files than this, the change is wrong and not the machine. */
const MAX_FILES = 12;

/** Dependencies of a repetition. */
export interface Repeater {
  /** Runs a group with these arguments. */
  readonly runGroup: (group: TestGroup, args: readonly string[]) => Promise<TestRun>;
  /** The places of a test that another file defines: a contract suite, or what makes tests that need a server. */
  readonly placesOf: (test: FailedTest) => readonly string[];
}

/**
 * Repeats the failed tests of a run once, one file after the other and nothing else at the same time. A test that passes then is
 * unstable instead of failed. Nothing is repeated where a runner ended in the middle, or after many failures.
 */
export async function repeatFailed(
  run: TestRun,
  group: TestGroup,
  { runGroup, placesOf }: Repeater,
): Promise<TestRun> {
  const located = run.report.failed.map((test) => locatedTest(test, placesOf));
  const report = { ...run.report, failed: located };
  const byFile = Map.groupBy(located, ({ file }) => file.replace(/^\.\//, ""));
  if (byFile.size > MAX_FILES) return { ...run, report };
  const unstable: FailedTest[] = [];
  for (const [file, tests] of byFile) {
    const places = group.places.includes(file) ? [file] : [...new Set(tests.flatMap(placesOf))];
    if (places.length === 0) continue;
    const alone = { ...group, name: `${group.name}, ${file} again`, places, jobs: 1 };
    const again = await runGroup(alone, [filterOf(tests.map(({ name }) => topName(name)))]);
    const isWhole = again.report.passed > 0 && (again.code === 0 || again.report.failed.length > 0);
    const failedAgain = new Set(again.report.failed.map(({ name }) => topName(name)));
    if (isWhole) unstable.push(...tests.filter(({ name }) => !failedAgain.has(topName(name))));
  }
  return {
    ...run,
    report: {
      ...report,
      passed: report.passed + unstable.length,
      failed: report.failed.filter((test) => !unstable.includes(test)),
      unstable: unstable.filter(({ name }, index) =>
        unstable.findIndex((other) => topName(other.name) === topName(name)) === index
      ),
    },
  };
}

/** With its test file, where a helper registered the test and its failure has no stack: a leak, for example. */
function locatedTest(test: FailedTest, placesOf: Repeater["placesOf"]): FailedTest {
  if (test.file === "" || test.file.endsWith("_test.ts")) return test;
  const [place, ...others] = placesOf(test);
  return place === undefined || others.length > 0 ? test : { ...test, file: `./${place}` };
}

/** The argument of the runner for tests of these names only. */
export function filterOf(names: readonly string[]): string {
  return `--filter=/^(?:${[...new Set(names.map(RegExp.escape))].join("|")})$/`;
}
