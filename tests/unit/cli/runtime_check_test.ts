import { assertEquals } from "@std/assert";
import { checkRuntime } from "../../../src/cli/runtime_check.ts";

/** Release, ALLOW_UNSAFE_DENO, and: nothing to say, a warning, or a refusal. */
const CASES: readonly [string, boolean, "nothing" | "warn" | "refuse"][] = [
  ["2.9.3", false, "nothing"],
  ["2.8.3", false, "nothing"],
  ["2.9.4", false, "refuse"],
  ["2.9.8", false, "refuse"],
  ["2.9.6+abc", false, "refuse"],
  ["2.9.4", true, "warn"],
  ["2.9.9", false, "warn"],
  ["2.10.0", false, "warn"],
  ["3.0.0-rc.1", true, "warn"],
];

for (const [version, allowUnsafe, expected] of CASES) {
  Deno.test(`runtime: Deno ${version}${allowUnsafe ? " allowed by the operator" : ""}: ${expected}`, () => {
    const verdict = checkRuntime(version, allowUnsafe);
    assertEquals(verdict === undefined ? "nothing" : verdict.refuse ? "refuse" : "warn", expected);
  });
}

Deno.test("runtime: a refusal says why and what would be right", () => {
  assertEquals(
    checkRuntime("2.9.5", false)?.text,
    "Cannot start: Deno 2.9.5 aborts the process when a gRPC peer closes its session (Deno 2.9.4 to 2.9.8 do); " +
      "run it with Deno 2.9.3, or set ALLOW_UNSAFE_DENO=true to start all the same",
  );
});
