import type { Skip } from "./skips.ts";
import { type FailedTest, type ReportedTest, topName } from "../../tests/harness/test_report.ts";
import type { TestRun } from "../test/join_runs.ts";

/** Longer names differ in so many letters: the expressions of the runner may not nest deeper. */
const MAX_LETTERS = 40;

/** A position in the begins of names, by what follows it; a begin ends where nothing follows. */
interface Place extends Map<string, Place> {}

/**
 * The argument of the runner for all tests but those whose names begin as these do. Its expressions have no word for "not":
 * another name is one that leaves the names at some letter, or ends within them.
 */
export function filterExcept(names: readonly string[]): string {
  const root: Place = new Map();
  for (const name of names) {
    let place = root;
    for (const letter of name.slice(0, MAX_LETTERS)) {
      const next: Place = place.get(letter) ?? new Map();
      place.set(letter, next);
      place = next;
    }
  }
  return `--filter=/^${otherThan(root)}$/`;
}

/** The names with their reasons, one line each. */
export function skipLines(skips: readonly Skip[]): string[] {
  const lines = skips.flatMap(({ reason, tests }) =>
    Object.entries(tests).flatMap(([file, names]) =>
      names.map((name) => `not run: ${name} (${file}): ${reason}`)
    )
  );
  return lines.length === 0 ? [] : [...lines, `not run with this base runtime: ${lines.length} tests`];
}

/** The names of all tests that are skipped. */
export function skippedNames(skips: readonly Skip[]): string[] {
  return skips.flatMap(({ tests }) => Object.values(tests).flat());
}

/** The skipped tests of a report that are not among these. */
export function unlisted(skipped: readonly ReportedTest[], skips: readonly Skip[]): ReportedTest[] {
  const names = skippedNames(skips);
  return skipped.filter(({ name }) => !names.includes(name));
}

/** Failures for skips that are not needed any more, by a run of the skipped tests alone. */
export function needless(skips: readonly Skip[], { report, times = [] }: TestRun): FailedTest[] {
  const failed = new Set(report.failed.map(({ name }) => topName(name)));
  const ran = new Set(times.map(({ name }) => name));
  return skips.flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([file, names]) =>
      names.filter((name) =>
        ran.has(name) && !failed.has(name) && !report.skipped.some((test) => test.name === name)
      ).map((name) => ({ name, file, reason: "it passes: remove it from scripts/binary/skips.ts" }))
    )
  );
}

function otherThan(place: Place): string {
  const others = `[^${[...place.keys()].map(literal).join("")}].*`;
  const longer = [...place].filter(([, next]) => next.size > 0)
    .map(([letter, next]) => literal(letter) + otherThan(next));
  return `(?:${[...longer, others].join("|")})?`;
}

function literal(letter: string): string {
  return `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;
}
