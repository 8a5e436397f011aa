import { assertEquals } from "@std/assert";
import { filterExcept, needless, skippedNames } from "../../../scripts/binary/skip_filter.ts";
import { EMPTY_REPORT } from "../../harness/test_report.ts";

const FILE = "tests/integration/a_test.ts";
const SKIPS = [{ reason: "it lacks locks", tests: { [FILE]: ["a lock", "a lock (twice)", "b"] } }];

Deno.test("skipped tests: the filter lets all other names through, those that begin alike too", () => {
  const text = filterExcept(skippedNames(SKIPS)).replace(/^--filter=\/(.*)\/$/, "$1");
  const filter = new RegExp(text, "u");
  const names = [
    "a lock",
    "a lock (twice)",
    "b",
    "",
    "a",
    "a locks",
    "a lock (",
    "a lock (twice) > step",
    "c",
    "ab",
  ];
  assertEquals(names.filter((name) => filter.test(name)), names.slice(3));
});

Deno.test("skipped tests: one that passes is a failure; one that fails or did not come to its end is none", () => {
  const report = {
    ...EMPTY_REPORT,
    failed: [{ name: "a lock > its step", file: FILE, reason: "" }],
    skipped: [`a lock (twice) (${FILE})`],
  };
  const times = ["a lock", "a lock (twice)", "b"].map((name) => ({ file: FILE, name, seconds: 0 }));
  const found = needless(SKIPS, { name: "skipped", code: 1, report, times });
  assertEquals(found.map(({ name, file }) => [name, file]), [["b", FILE]]);
});
