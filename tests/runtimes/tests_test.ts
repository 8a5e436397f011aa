import { assertEquals, assertMatch } from "#assert";
import { runDeno, testRuntimes } from "../harness/deno_runtime.ts";

/** The vectors, and the floods of the gRPC engine. */
const PLACES = [
  "tests/unit/ratelimit/vectors_test.ts",
  "tests/unit/grpc/native/flood_test.ts",
  "tests/integration/grpc/native/flood_test.ts",
];

testRuntimes("the test task passes vectors and floods of the gRPC engine", async (runtime) => {
  const { code, text } = await runDeno(runtime, ["task", "test", ...PLACES]);
  assertEquals(code, 0, text);
  assertMatch(text, /^[1-9]\d* passed, 0 failed$/m);
});
