import { assertEquals } from "#assert";
import { filterExcept, needless, skippedNames } from "../../../scripts/binary/skip_filter.ts";
import { EMPTY_REPORT } from "../../harness/test_report.ts";

const FILE = "tests/integration/a_test.ts";
const LONG = "a test whose name is longer than the letters that count";
const SKIPS = [{ reason: "it lacks locks", tests: { [FILE]: ["a lock", "b: c", LONG] } }];

Deno.test("skipped tests: the filter lets all names through but those that begin as theirs", () => {
  const text = filterExcept(skippedNames(SKIPS)).replace(/^--filter=\/(.*)\/$/, "$1");
  const filter = new RegExp(text, "u");
  const names = [
    "a lock",
    "b: c",
    "a lock > step",
    LONG,
    "",
    "a",
    "a loc",
    "a test whose name",
    "b: d",
    "c",
    "ab",
  ];
  assertEquals(names.filter((name) => filter.test(name)), names.slice(4));
});

Deno.test("skipped tests: one that passes is a failure; one that fails or did not come to its end is none", () => {
  const report = {
    ...EMPTY_REPORT,
    failed: [{ name: "a lock > its step", file: FILE, reason: "" }],
    skipped: [{ name: LONG, file: FILE }],
  };
  const times = ["a lock", LONG, "b: c"].map((name) => ({ file: FILE, name, seconds: 0 }));
  const found = needless(SKIPS, { name: "skipped", code: 1, report, times });
  assertEquals(found.map(({ name, file }) => [name, file]), [["b: c", FILE]]);
});
