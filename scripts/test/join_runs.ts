import type { FailedTest, TestReport, TestTime } from "../../tests/harness/test_report.ts";

/** The end of one of several runners. */
export interface TestRun {
  readonly name: string;
  readonly code: number;
  readonly report: TestReport;
  /** True if it was ended before all its tests were: the others of their threads are among the skipped ones. */
  readonly isInterrupted?: boolean;
  readonly times?: readonly TestTime[];
}

/**
 * Adds the runs up. A runner that failed outside of any test is a separate failure, and so is one without a test where
 * none may be `empty`.
 */
export function joinRuns(runs: readonly TestRun[], { empty }: { readonly empty: boolean }): TestReport {
  const outside = runs.flatMap(({ name, code, report }) => {
    const { passed, failed, unstable, skipped } = report;
    if (code !== 0 && failed.length + unstable.length === 0) {
      return [outsideTests(`the runner of "${name}" ended with code ${code}`)];
    }
    const isBare = passed + failed.length + skipped.length === 0;
    return isBare && !empty ? [outsideTests(`no test of "${name}" ran`)] : [];
  });
  return {
    passed: runs.reduce((sum, { report }) => sum + report.passed, 0),
    failed: [...runs.flatMap(({ report }) => report.failed), ...outside],
    unstable: runs.flatMap(({ report }) => report.unstable),
    skipped: runs.flatMap(({ report }) => report.skipped),
  };
}

function outsideTests(name: string): FailedTest {
  return { name, file: "", reason: "" };
}
