import { assertEquals } from "#assert";
import { readBenchOptions } from "../../../scripts/bench/options.ts";
import { measureReload } from "../../../scripts/bench/reload.ts";

Deno.test({
  name: "measureReload: one short round; every call is answered, and slices are found",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const { rules, rounds, longestMs, longestBeforeMs, loadSeconds } = await measureReload({
      options: readBenchOptions(["--quick", "--only", "reload"]),
      signal: new AbortController().signal,
      say: () => {},
    });
    assertEquals([rules, rounds], [5_000, [{ longestBeforeMs, longestMs, loadSeconds }]]);
    assertEquals([longestMs > 0, longestBeforeMs > 0, loadSeconds > 0], [true, true, true]);
  },
});
