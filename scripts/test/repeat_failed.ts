import { type ReportedTest, topName } from "../../tests/harness/test_report.ts";
import type { TestRun } from "./join_runs.ts";
import type { TestGroup } from "./test_groups.ts";

/** With more files than this, the change is wrong and not the machine. */
const MAX_FILES = 12;

/** Dependencies of a repetition. */
export interface Repeater {
  /** Runs a group with these arguments. */
  readonly runGroup: (group: TestGroup, args: readonly string[]) => Promise<TestRun>;
  /** The places of a test that another file defines: a contract suite, or what makes tests that need a server. */
  readonly placesOf: (test: ReportedTest) => readonly string[];
}

/**
 * Repeats the failed tests of a run once, one file after the other and nothing else at the same time, and also those behind
 * a test that hung. A test that failed and passes then is unstable. Nothing is repeated where a runner left no report, or
 * after many failures.
 */
export async function repeatFailed(
  run: TestRun,
  group: TestGroup,
  { runGroup, placesOf }: Repeater,
): Promise<TestRun> {
  const isInterrupted = run.isInterrupted === true;
  const located = <T extends ReportedTest>(test: T) => locatedTest(test, placesOf);
  const failed = run.report.failed.map(located);
  const skipped = isInterrupted ? run.report.skipped.map(located) : run.report.skipped;
  const report = { ...run.report, failed, skipped };
  const byFile = Map.groupBy(
    [...failed, ...isInterrupted ? skipped : []],
    ({ file }) => file.replace(/^\.\//, ""),
  );
  if (byFile.size > MAX_FILES) return { ...run, report };
  const passed = new Set<ReportedTest>();
  for (const [file, tests] of byFile) {
    const places = group.places.includes(file) ? [file] : [...new Set(tests.flatMap(placesOf))];
    if (places.length === 0) continue;
    const alone = { ...group, name: `${group.name}, ${file} again`, places, jobs: 1 };
    const again = await runGroup(alone, [filterOf(tests.map(({ name }) => topName(name)))]);
    const isWhole = again.report.passed > 0 && (again.code === 0 || again.report.failed.length > 0);
    const left = new Set([...again.report.failed, ...again.report.skipped].map(({ name }) => topName(name)));
    if (!isWhole) continue;
    for (const test of tests) if (!left.has(topName(test.name))) passed.add(test);
  }
  const unstable = failed.filter((test) => passed.has(test));
  return {
    ...run,
    report: {
      ...report,
      passed: report.passed + passed.size,
      failed: failed.filter((test) => !passed.has(test)),
      skipped: skipped.filter((test) => !passed.has(test)),
      unstable: unstable.filter(({ name }, index) =>
        unstable.findIndex((other) => topName(other.name) === topName(name)) === index
      ),
    },
  };
}

/** With its test file, where a helper registered the test and its failure has no stack: a leak, for example. */
function locatedTest<T extends ReportedTest>(test: T, placesOf: Repeater["placesOf"]): T {
  if (test.file === "" || test.file.endsWith("_test.ts")) return test;
  const [place, ...others] = placesOf(test);
  return place === undefined || others.length > 0 ? test : { ...test, file: `./${place}` };
}

/** The argument of the runner for tests of these names only. */
export function filterOf(names: readonly string[]): string {
  return `--filter=/^(?:${[...new Set(names.map(RegExp.escape))].join("|")})$/`;
}
