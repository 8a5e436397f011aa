import { assertEquals } from "#assert";
import { parseDuration } from "../../../src/base/duration.ts";

const READ: readonly (readonly [text: string, ms: number | undefined])[] = [
  ["0", 0],
  ["+0", 0],
  ["0s", 0],
  ["1ns", 0.000_001],
  ["150us", 0.15],
  ["150µs", 0.15],
  ["150μs", 0.15],
  ["10ms", 10],
  ["10s", 10_000],
  ["+10s", 10_000],
  ["1.1s", 1100],
  [".5s", 500],
  ["1.s", 1000],
  ["1m30s", 90_000],
  ["1.5h", 5_400_000],
  ["2h45m30.5s", 9_930_500],
  ["24h", 86_400_000],
  ["30d", 2_592_000_000],
  ["1d12h", 129_600_000],
  ["1s1s", 2000],
  ["", undefined],
  ["10", undefined],
  ["-1s", undefined],
  ["-0", undefined],
  ["s", undefined],
  [".s", undefined],
  ["1 s", undefined],
  [" 1s", undefined],
  ["1s ", undefined],
  ["1S", undefined],
  ["1w", undefined],
  ["1e3s", undefined],
  ["1s-1s", undefined],
  ["10s,", undefined],
  ["200000d", undefined],
];

for (const [text, ms] of READ) {
  Deno.test(`parseDuration reads ${JSON.stringify(text)}`, () => assertEquals(parseDuration(text), ms));
}
