/** A test of a report. */
export interface ReportedTest {
  /** A step has the name of its test in front, see `topName`. */
  readonly name: string;
  /** Path from the root, such as `./tests/tidy_test.ts`; empty for a runner that failed outside of any test. */
  readonly file: string;
}

/** A test that failed. */
export interface FailedTest extends ReportedTest {
  /** The begin of its error. */
  readonly reason: string;
}

/** The outcome of a test run. Steps of a test count as tests. */
export interface TestReport {
  readonly passed: number;
  readonly failed: readonly FailedTest[];
  /** Tests that failed and passed when they were repeated alone; `passed` includes them. */
  readonly unstable: readonly FailedTest[];
  readonly skipped: readonly ReportedTest[];
}

/** Time that a test took, its steps included. */
export interface TestTime extends ReportedTest {
  readonly seconds: number;
}

/** Nothing ran, or nothing is known of it. */
export const EMPTY_REPORT: TestReport = { passed: 0, failed: [], unstable: [], skipped: [] };

const MAX_UNSTABLE = 1;

const TEST_CASE = /<testcase\b([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs;
const FAILURE = /<(?:failure|error)\b([^>]*)/;
/** A place of a stack that is in a test file; its path from the root. */
const TEST_FRAME = /\bfile:\/\/\S*?\/(tests\/\S+?_test\.ts):\d/g;
/** Of the error of a test; its whole text is in the output of its runner. */
const MAX_REASON = 400;
/** Between the name of a test and that of its step. */
const STEP_OF = " > ";
const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

/** Reads a report in JUnit's XML format, as the test runner writes it. */
export function readTestReport(xml: string): TestReport {
  let passed = 0;
  const failed: FailedTest[] = [];
  const skipped: ReportedTest[] = [];
  for (const [, attributes = "", body = ""] of xml.matchAll(TEST_CASE)) {
    const name = attribute(attributes, "name");
    const file = fileOf(attribute(attributes, "classname"), body);
    const failure = FAILURE.exec(body);
    if (failure !== null) failed.push({ name, file, reason: reasonOf(failure[1] ?? "") });
    else if (/<skipped\b/.test(body)) skipped.push({ name, file });
    else passed++;
  }
  return { passed, failed, unstable: [], skipped };
}

/** The file of a test: a helper registers tests of other files, which the stack of a failure names. */
function fileOf(file: string, body: string): string {
  if (file.endsWith("_test.ts")) return file;
  const named = body.matchAll(TEST_FRAME).toArray().at(-1)?.[1];
  return named === undefined ? file : `./${named}`;
}

/** The name of the test that a step belongs to; that of the test itself otherwise. */
export function topName(name: string): string {
  return name.split(STEP_OF, 1)[0] ?? name;
}

/** Reads the time of each test from a report in JUnit's XML format; steps are part of their tests. */
export function readTestTimes(xml: string): TestTime[] {
  return [...xml.matchAll(TEST_CASE)].map(([, attributes = ""]) => ({
    file: attribute(attributes, "classname"),
    name: attribute(attributes, "name"),
    seconds: Number(attribute(attributes, "time")),
  })).filter(({ name }) => !name.includes(STEP_OF));
}

/** The end of a run, in addition to its report. */
export interface RunnerEnd {
  readonly code: number;
  /** A skipped test is a failure, and so are several unstable ones. */
  readonly strict: boolean;
}

/** The verdict on a run: lines to print, of which the last one counts, and whether the run passed. */
interface Verdict {
  readonly ok: boolean;
  readonly lines: readonly string[];
}

/** Judges a run. A runner that failed outside of any test, or that ran none, counts as one failure. */
export function judge(report: TestReport, end: RunnerEnd): Verdict {
  const lines: string[] = [];
  for (const test of report.skipped) lines.push(`skipped: ${placeOf(test)}`);
  for (const test of report.unstable) lines.push(`unstable: ${describe(test)}`);
  for (const test of report.failed) lines.push(`failed: ${describe(test)}`);
  let failures = report.failed.length;
  if (failures === 0 && end.code !== 0) {
    lines.push(`failed: the test runner ended with code ${end.code} outside of any test`);
    failures++;
  } else if (report.passed + failures === 0) {
    lines.push("failed: no test ran");
    failures++;
  }
  if (end.strict && report.skipped.length > 0) {
    lines.push(`failed: ${report.skipped.length} skipped, and no test may be skipped with CI=true`);
    failures += report.skipped.length;
  }
  if (end.strict && report.unstable.length > MAX_UNSTABLE) {
    lines.push(`failed: ${report.unstable.length} unstable, and at most ${MAX_UNSTABLE} may be with CI=true`);
    failures += report.unstable.length;
  }
  const skipped = end.strict || report.skipped.length === 0 ? "" : `, ${report.skipped.length} skipped`;
  lines.push(`${report.passed} passed, ${failures} failed${skipped}`);
  return { ok: failures === 0, lines };
}

function describe(test: FailedTest): string {
  return test.reason === "" ? placeOf(test) : `${placeOf(test)}: ${test.reason}`;
}

function placeOf({ name, file }: ReportedTest): string {
  return file === "" ? name : `${name} (${file})`;
}

function reasonOf(attributes: string): string {
  const text = attribute(attributes, "message").replace(/\s+/g, " ").trim();
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text;
}

function attribute(attributes: string, name: string): string {
  const text = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes)?.[1] ?? "";
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, entity) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hex !== undefined) return String.fromCodePoint(parseInt(hex, 16));
    return ENTITIES[entity] ?? whole;
  });
}
