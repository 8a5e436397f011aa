import { assertEquals, assertThrows } from "@std/assert";
import { formatDuration, parseDuration } from "../../src/base/duration.ts";

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

const WRITTEN: readonly (readonly [ms: number, text: string])[] = [
  [0, "0s"],
  [0.000_001, "1ns"],
  [0.15, "150us"],
  [0.001_5, "1.5us"],
  [1, "1ms"],
  [999.5, "999.5ms"],
  [1000, "1s"],
  [1500, "1.5s"],
  [90_000, "1m30s"],
  [3_600_000, "1h"],
  [3_601_000, "1h1s"],
  [86_400_000, "24h"],
];

for (const [ms, text] of WRITTEN) {
  Deno.test(`formatDuration writes ${ms} ms so that it can be read again`, () => {
    assertEquals({ text: formatDuration(ms), ms: parseDuration(formatDuration(ms)) }, { text, ms });
  });
}

for (const ms of [-1, Number.NaN, Infinity]) {
  Deno.test(`formatDuration refuses ${ms}`, () => {
    const error = assertThrows(() => formatDuration(ms));
    const text = `Cannot format duration "${ms}": a finite number of 0 or more would be right`;
    assertEquals([error.name, error.message], ["RangeError", text]);
  });
}
