import { assertEquals } from "#assert";
import { wholeNumber } from "../../../src/http/routes/rate_limit_json.ts";

const WHOLE: readonly (readonly [source: string, expected: number | undefined])[] = [
  ["0", 0],
  ["0.000", 0],
  ["0e99999999999", 0],
  ["7", 7],
  ["-1", -1],
  ["1.0", 1],
  ["1.5", undefined],
  ["1e2", 100],
  ["1E+2", 100],
  ["1.25e2", 125],
  ["1.25e1", undefined],
  ["100e-2", 1],
  ["150e-2", undefined],
  ["1e-999999999", undefined],
  ["0.0001e4", 1],
  ["4294967295", 4_294_967_295],
  ["9007199254740991", 9_007_199_254_740_991],
  ["9007199254740992", 9_007_199_254_740_992],
  ["9007199254740993", Infinity],
  ["9007199254740992.0", 9_007_199_254_740_992],
  ["-9007199254740993", -Infinity],
  ["18446744073709551615", Infinity],
  ["1e16", Infinity],
  ["1e999999999", Infinity],
  ["-1e999999999", -Infinity],
  ["", undefined],
  [" 1", undefined],
  ["01", undefined],
  ["+1", undefined],
  ["1.", undefined],
  [".5", undefined],
  ["0x10", undefined],
  ["NaN", undefined],
];

for (const [source, expected] of WHOLE) {
  Deno.test(`the whole number of "${source}" is ${expected}`, () => {
    assertEquals(wholeNumber(source), expected);
  });
}

Deno.test("a million digits are judged quickly", () => {
  assertEquals(wholeNumber("9".repeat(1_000_000)), Infinity);
  assertEquals(wholeNumber(`0.${"0".repeat(1_000_000)}1`), undefined);
  assertEquals(wholeNumber(`1.${"0".repeat(1_000_000)}`), 1);
});
