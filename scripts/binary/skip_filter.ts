import type { Skip } from "./skips.ts";
import { type FailedTest, topName } from "../../tests/harness/test_report.ts";
import type { TestRun } from "../test/join_runs.ts";

/** A position in the names: what follows it, and whether one ends there. */
interface Place {
  readonly next: Map<string, Place>;
  isEnd: boolean;
}

/** The argument of the runner for all tests but those of these names; its expressions have no word for "not". */
export function filterExcept(names: readonly string[]): string {
  const root: Place = { next: new Map(), isEnd: false };
  for (const name of names) {
    let place = root;
    for (const letter of name) {
      const next = place.next.get(letter) ?? { next: new Map(), isEnd: false };
      place.next.set(letter, next);
      place = next;
    }
    place.isEnd = true;
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

/** Failures for skips that are not needed any more, by a run of the skipped tests alone. */
export function needless(skips: readonly Skip[], { report, times = [] }: TestRun): FailedTest[] {
  const failed = new Set(report.failed.map(({ name }) => topName(name)));
  const ran = new Set(times.map(({ name }) => name));
  return skips.flatMap(({ tests }) =>
    Object.entries(tests).flatMap(([file, names]) =>
      names.filter((name) =>
        ran.has(name) && !failed.has(name) && !report.skipped.some((line) => line.startsWith(`${name} (`))
      ).map((name) => ({ name, file, reason: "it passes: remove it from scripts/binary/skips.ts" }))
    )
  );
}

/** An expression for the texts that do not lead from this place to the end of a name. */
function otherThan({ next, isEnd }: Place): string {
  if (next.size === 0) return isEnd ? ".+" : ".*";
  const others = `[^${[...next.keys()].map(literal).join("")}].*`;
  const longer = [...next].map(([letter, place]) => literal(letter) + otherThan(place));
  return `(?:${[...longer, others].join("|")})${isEnd ? "" : "?"}`;
}

function literal(letter: string): string {
  return `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;
}
