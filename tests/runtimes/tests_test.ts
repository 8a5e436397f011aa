import { assertEquals, assertMatch } from "@std/assert";
import { planTests } from "../../scripts/test/test_groups.ts";
import { runDeno, testRuntimes } from "../harness/deno_runtime.ts";

/** The vectors, and the floods of the gRPC engine, as the task runs tests. */
const PLACES = [
  "tests/unit/ratelimit/vectors_test.ts",
  "tests/unit/grpc/native/flood_test.ts",
  "tests/integration/grpc/native/flood_test.ts",
];

testRuntimes("vectors and floods of the gRPC engine pass", async (runtime) => {
  for (const { places, flags } of planTests(1, PLACES)) {
    const { code, text } = await runDeno(runtime, ["test", "--no-check", "--quiet", ...flags, ...places]);
    assertEquals(code, 0, text);
    assertMatch(text, /\| [1-9]\d* passed .*\| 0 failed/);
  }
});
