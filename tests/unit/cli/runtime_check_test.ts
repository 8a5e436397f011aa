import { assertEquals } from "#assert";
import { checkRuntime } from "../../../src/cli/runtime_check.ts";

/** Release, gRPC engine, ALLOW_UNSAFE_DENO, and: nothing to say, a warning, or a refusal. */
const CASES: readonly [string, "native" | "grpc-js", boolean, "nothing" | "warn" | "refuse"][] = [
  ["2.9.0", "native", false, "nothing"],
  ["2.9.3", "native", false, "nothing"],
  ["2.9.4", "native", false, "nothing"],
  ["2.9.8", "native", false, "nothing"],
  ["2.10.0", "native", false, "nothing"],
  ["2.9.0", "grpc-js", false, "nothing"],
  ["2.9.3", "grpc-js", false, "nothing"],
  ["2.9.4", "grpc-js", false, "refuse"],
  ["2.9.8", "grpc-js", false, "refuse"],
  ["2.9.6+abc", "grpc-js", false, "refuse"],
  ["2.9.4", "grpc-js", true, "warn"],
  ["2.9.9", "grpc-js", false, "warn"],
  ["2.10.0", "grpc-js", false, "warn"],
  ["3.0.0-rc.1", "grpc-js", true, "warn"],
];

for (const [version, engine, allowed, expected] of CASES) {
  Deno.test(`runtime: Deno ${version}, ${engine}${allowed ? ", allowed by the operator" : ""}: ${expected}`, () => {
    const verdict = checkRuntime(version, { GRPC_ENGINE: engine, ALLOW_UNSAFE_DENO: allowed });
    assertEquals(verdict === undefined ? "nothing" : verdict.refuse ? "refuse" : "warn", expected);
  });
}

Deno.test("runtime: a refusal names the setting, the reason and the next step", () => {
  assertEquals(
    checkRuntime("2.9.5", { GRPC_ENGINE: "grpc-js", ALLOW_UNSAFE_DENO: false })?.text,
    "Cannot start: with GRPC_ENGINE=grpc-js, a gRPC peer can abort Deno 2.9.5 (Deno 2.9.4 to 2.9.8 have this fault); " +
      "use GRPC_ENGINE=native or another release, or set ALLOW_UNSAFE_DENO=true to start anyway",
  );
});
