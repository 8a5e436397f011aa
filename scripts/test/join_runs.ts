import type { TestReport, TestTime } from "../../tests/harness/test_report.ts";

/** How one of several runners ended. */
export interface TestRun {
  readonly name: string;
  readonly code: number;
  readonly report: TestReport;
  readonly times?: readonly TestTime[];
}

/**
 * Adds the runs up. A runner that failed outside of any test is a separate failure, and so is one without a test where
 * none may be `empty`.
 */
export function joinRuns(runs: readonly TestRun[], { empty }: { readonly empty: boolean }): TestReport {
  const outside = runs.flatMap(({ name, code, report }) => {
    const { passed, failed, skipped } = report;
    if (code !== 0 && failed.length === 0) return [`the runner of "${name}" ended with code ${code}`];
    const isBare = passed + failed.length + skipped.length === 0;
    return isBare && !empty ? [`no test of "${name}" ran`] : [];
  });
  return {
    passed: runs.reduce((sum, { report }) => sum + report.passed, 0),
    failed: [...runs.flatMap(({ report }) => report.failed), ...outside],
    skipped: runs.flatMap(({ report }) => report.skipped),
  };
}
