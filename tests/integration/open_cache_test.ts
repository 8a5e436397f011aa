import { assertEquals } from "@std/assert";
import { ServeFixture } from "../harness/serve_fixture.ts";

for (
  const [env, warnings] of [
    [{ BACKEND_TYPE: "memory" }, 0],
    [{ BACKEND_TYPE: "memory", MEMORY_MAX_KEYS: "1000000000" }, 1],
  ] as const
) {
  Deno.test(`open cache: with ${JSON.stringify(env)} a heap that is too small is ${warnings} warnings`, async () => {
    await using service = await ServeFixture.start({ env });
    const lines = service.log.filter((line) =>
      /MEMORY_MAX_KEYS 1000000000 may require 333850 MB of heap/.test(line)
    );
    assertEquals(lines.length, warnings);
  });
}
