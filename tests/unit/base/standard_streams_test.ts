import { assertEquals } from "#assert";
import { captureConsole } from "../../../src/base/standard_streams.ts";

Deno.test("captured console: what a package prints becomes a log line", () => {
  const printed: unknown[] = [];
  const saved = { ...console };
  const ignore = () => {};
  const warning = (message: string, fields: unknown) => void printed.push([message, fields]);
  try {
    captureConsole({ debug: ignore, info: ignore, warning, error: ignore });
    console.error("E No address", new Error("refused"), 1);
  } finally {
    Object.assign(console, saved);
  }
  assertEquals(printed, [["A package printed a message", { text: "E No address Error: refused 1" }]]);
});
