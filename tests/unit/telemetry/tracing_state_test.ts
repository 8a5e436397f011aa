import { createTraceState } from "@opentelemetry/api";
import { assertEquals } from "@std/assert";
import { passedTraceState } from "../../../src/telemetry/tracing_state.ts";

const LONG_KEY = `k${"a".repeat(255)}`;
const LONG_VALUE = "v".repeat(256);
const MANY = Array.from({ length: 40 }, (_, index) => `k${index}=${index}`);

const CASES: readonly (readonly [name: string, text: string, passed: string])[] = [
  ["nothing", "", ""],
  ["one member", "a=1", "a=1"],
  ["members with spaces and tabs around them", " a=1 ,\tb=2,,", "a=1,b=2"],
  ["a space within and one in front of a value", "a= 1 2", "a= 1 2"],
  ["a member without an equals sign", "a,b=2", "b=2"],
  ["a member without a key", "=1,b=2", "b=2"],
  ["a member without a value", "a=,b=2", "b=2"],
  ["an equals sign in a value", "a=1=2,b=2", "b=2"],
  ["capitals in a key", "A=1,b=2", "b=2"],
  ["a key that begins with a digit", "1a=1", ""],
  ["a tenant that begins with a digit", "1a@vendor=1", "1a@vendor=1"],
  ["a vendor that is too long", `a@${"v".repeat(15)}=1`, ""],
  ["a tenant that is too long", `${"t".repeat(242)}@v=1`, ""],
  ["all signs of a key", "a-b_c*d/e=1", "a-b_c*d/e=1"],
  ["what is no ASCII", "a=é,b=2", "b=2"],
  ["the longest key", `${LONG_KEY}=1`, `${LONG_KEY}=1`],
  ["a key that is too long", `${LONG_KEY}a=1`, ""],
  ["the longest value", `a=${LONG_VALUE}`, `a=${LONG_VALUE}`],
  ["a value that is too long", `a=${LONG_VALUE}v`, ""],
  ["more than 512 characters", `a=1,${"b".repeat(250)}=${"c".repeat(258)}`, ""],
];

for (const [name, text, passed] of CASES) {
  Deno.test(`trace state: ${name}`, () => {
    assertEquals(passedTraceState(text), passed);
    // The SDK's own reading of it.
    assertEquals(createTraceState(text).serialize(), passed);
  });
}

Deno.test("trace state: of more than 32 members the first are kept", () => {
  assertEquals(passedTraceState(MANY.join(",")), MANY.slice(0, 32).join(","));
});

Deno.test("trace state: of two members with one key the first is kept", () => {
  assertEquals(passedTraceState("a=1,b=2,a=3"), "a=1,b=2");
});
