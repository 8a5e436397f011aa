import { createTraceState } from "@opentelemetry/api";
import { assertEquals } from "#assert";
import { passedTraceState, readTraceParent, type TraceParent } from "../../../src/base/trace_context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const SHORT = "a3ce929d0e0e4736";
const ZERO_SPAN = "0000000000000000";
const ELSE = { "x-b3-traceid": SHORT, "x-b3-spanid": SPAN, "x-b3-sampled": "0" };
const OF_ELSE = parent(`0000000000000000${SHORT}`, false);

function parent(traceId: string, sampled?: boolean, state?: string): TraceParent {
  return { span: { traceId, spanId: SPAN }, sampled, state };
}

function choice(sampled: boolean): TraceParent {
  return { span: undefined, sampled, state: undefined };
}

const CASES: readonly [
  title: string,
  headers: Readonly<Record<string, string>>,
  parent: TraceParent | undefined,
][] = [
  ["nothing", { "content-type": "application/grpc", "x-request-id": "7" }, undefined],
  // W3C
  ["W3C, recorded", { traceparent: `00-${TRACE}-${SPAN}-01` }, parent(TRACE, true)],
  ["W3C, not recorded", { traceparent: `00-${TRACE}-${SPAN}-00` }, parent(TRACE, false)],
  ["W3C, recorded, other flags", { traceparent: `00-${TRACE}-${SPAN}-03` }, parent(TRACE, true)],
  ["W3C, other flags", { traceparent: `00-${TRACE}-${SPAN}-fe` }, parent(TRACE, false)],
  ["W3C, blanks around", { traceparent: ` 00-${TRACE}-${SPAN}-01 ` }, parent(TRACE, true)],
  [
    "W3C with state",
    { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: "a=1" },
    parent(TRACE, true, "a=1"),
  ],
  [
    "W3C with too much state",
    { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: "a".repeat(513) },
    parent(TRACE, true),
  ],
  ["W3C of a later version", { traceparent: `01-${TRACE}-${SPAN}-01-more` }, parent(TRACE, true)],
  ["W3C wins over B3", { traceparent: `00-${TRACE}-${SPAN}-01`, b3: "0", ...ELSE }, parent(TRACE, true)],
  ["W3C with more than its version has", { traceparent: `00-${TRACE}-${SPAN}-01-more` }, undefined],
  ["W3C of no version", { traceparent: `ff-${TRACE}-${SPAN}-01` }, undefined],
  ["W3C without a trace", { traceparent: `00-${"0".repeat(32)}-${SPAN}-01` }, undefined],
  ["W3C without a span", { traceparent: `00-${TRACE}-${ZERO_SPAN}-01` }, undefined],
  ["W3C in capitals", { traceparent: `00-${TRACE.toUpperCase()}-${SPAN}-01` }, undefined],
  ["W3C cut short", { traceparent: `00-${TRACE}-${SPAN}` }, undefined],
  ["W3C that cannot be read, then B3", { traceparent: "?", b3: "1" }, choice(true)],
  ["state alone", { tracestate: "a=1" }, undefined],
  // B3, single header
  ["B3, recorded", { b3: `${TRACE}-${SPAN}-1` }, parent(TRACE, true)],
  ["B3, not recorded", { b3: `${TRACE}-${SPAN}-0` }, parent(TRACE, false)],
  ["B3, debugged", { b3: `${TRACE}-${SPAN}-d` }, parent(TRACE, true)],
  ["B3 with the span above", { b3: `${TRACE}-${SPAN}-1-${SHORT}` }, parent(TRACE, true)],
  ["B3, choice left open", { b3: `${TRACE}-${SPAN}` }, parent(TRACE)],
  ["B3 of 64 bits", { b3: `${SHORT}-${SPAN}-1` }, parent(`${ZERO_SPAN}${SHORT}`, true)],
  ["B3 in capitals", { b3: `${TRACE.toUpperCase()}-${SPAN}-1` }, parent(TRACE, true)],
  ["B3, only no", { b3: "0" }, choice(false)],
  ["B3, only yes", { b3: "1" }, choice(true)],
  ["B3 without a trace", { b3: `${"0".repeat(32)}-${SPAN}-1` }, undefined],
  ["B3 of a bad choice", { b3: `${TRACE}-${SPAN}-2` }, undefined],
  ["B3 named like a property of every object", { b3: "constructor" }, undefined],
  ["B3 that cannot be read, then its headers", { b3: "?", ...ELSE }, OF_ELSE],
  // B3, headers
  ["B3 headers", ELSE, OF_ELSE],
  ["B3 headers, true", { ...ELSE, "x-b3-sampled": "true" }, { ...OF_ELSE, sampled: true }],
  ["B3 headers, debugged", { ...ELSE, "x-b3-flags": "1" }, { ...OF_ELSE, sampled: true }],
  ["B3 headers, choice left open", { "x-b3-traceid": TRACE, "x-b3-spanid": SPAN }, parent(TRACE)],
  ["B3 headers, only no", { "x-b3-sampled": "0" }, choice(false)],
  ["B3 headers, only debug", { "x-b3-flags": "1" }, choice(true)],
  ["B3 headers without a span", { "x-b3-traceid": TRACE, "x-b3-sampled": "1" }, choice(true)],
  ["B3 headers that cannot be read", { "x-b3-traceid": "?", "x-b3-spanid": SPAN }, undefined],
  ["B3 headers of a bad length", { "x-b3-traceid": TRACE.slice(1), "x-b3-spanid": SPAN }, undefined],
];

for (const [title, headers, expected] of CASES) {
  Deno.test(`trace context: ${title}`, () => {
    const header = (name: string) => Object.hasOwn(headers, name) ? headers[name] : undefined;
    const fields = Object.entries(headers);
    // With and without a list of all headers the same is found.
    assertEquals([readTraceParent({ header }), readTraceParent({ header, fields })], [expected, expected]);
  });
}

const LONG_KEY = `k${"a".repeat(255)}`;
const LONG_VALUE = "v".repeat(256);
const MANY = Array.from({ length: 40 }, (_, index) => `k${index}=${index}`);

const STATES: readonly (readonly [name: string, text: string, passed: string])[] = [
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
  ["not ASCII", "a=é,b=2", "b=2"],
  ["the longest key", `${LONG_KEY}=1`, `${LONG_KEY}=1`],
  ["a key that is too long", `${LONG_KEY}a=1`, ""],
  ["the longest value", `a=${LONG_VALUE}`, `a=${LONG_VALUE}`],
  ["a value that is too long", `a=${LONG_VALUE}v`, ""],
  ["more than 512 characters", `a=1,${"b".repeat(250)}=${"c".repeat(258)}`, ""],
];

for (const [name, text, passed] of STATES) {
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
