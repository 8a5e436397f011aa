import { assertEquals } from "#assert";
import { type AttributeValue, createTraceState, type HrTime, SpanKind } from "@opentelemetry/api";
import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { emptyResource } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { SPAN_KINDS, type SpanRecord } from "../../../src/telemetry/tracing_span_record.ts";
import { exported } from "../../harness/tracing_bed.ts";
import { spanOf } from "../../harness/span_samples.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "53995c3f42cd8ad8";

/** A span as ours, which comes through a pack, and as one of the SDK. */
interface SpanCase {
  readonly title: string;
  readonly ours?: Partial<SpanRecord["start"]> & { readonly endedAt?: number };
  readonly note?: (span: SpanRecord) => void;
  readonly sdk: Partial<ReadableSpan>;
  readonly state?: string;
}

const LOCAL = spanOf({ name: "parent", kind: SPAN_KINDS.server }, { traceId: TRACE });
const RESOURCE = emptyResource();
const NAMED = { name: "s", kind: SPAN_KINDS.internal };
const ODD = { name: 'GET /"\n', kind: SPAN_KINDS.server };
const NONE = { name: "s", kind: SpanKind.INTERNAL };

function below(spanId: string, isRemote: boolean): Partial<ReadableSpan> {
  return { parentSpanContext: { traceId: TRACE, spanId, traceFlags: 1, isRemote } };
}

const ATTRIBUTES: readonly [title: string, value: AttributeValue][] = [
  ["a text", "plain text"],
  ["an empty text", ""],
  ["quotes, backslashes and slashes", 'a "b" \\ / c'],
  ["line breaks and other controls", "a\n\r\t\u0000\u001f\u007f\u2028b"],
  ["letters of all sorts", "äß€漢字😀"],
  ["half of a character", "\ud83d!"],
  ["the other half", "!\ude00"],
  ["zero", 0],
  ["less than zero", -0],
  ["a whole number", 42],
  ["a whole number below zero", -7],
  ["a large whole number", 9_007_199_254_740_991],
  ["a whole number with an exponent", 1e21],
  ["a number with a fraction", 0.25],
  ["a small number", -1.5e-9],
  ["NaN", NaN],
  ["Infinity", Infinity],
  ["yes", true],
  ["no", false],
  ["texts", ["a", 'b"', ""]],
  ["numbers", [1, 2.5, -3]],
  ["truths", [true, false]],
  ["nothing in a list", ["a", null, undefined]],
  ["an empty list", []],
];

const TIMES: readonly [epochMs: number, startedAt: number, endedAt: number, start: HrTime, end: HrTime][] = [
  [1_763_775_844_000, 0, 0.25, [1_763_775_844, 0], [1_763_775_844, 250_000]],
  [1_763_775_844_999, 0.5, 1, [1_763_775_844, 999_500_000], [1_763_775_845, 0]],
  [1_000, 0.000_001, 0.000_1, [1, 1], [1, 100]],
  [0, 999.999_999_9, 2_000, [1, 0], [2, 0]],
  [0, 0, 0.000_001, [0, 0], [0, 1]],
  [-250, 0, 250, [-1, 750_000_000], [0, 0]],
];

const CASES: readonly SpanCase[] = [
  { title: "nothing but a name", sdk: NONE },
  { title: "a name that needs escapes", ours: { shape: ODD }, sdk: { ...ODD, kind: SpanKind.SERVER } },
  {
    title: "attributes of its shape and its own",
    ours: { shape: { name: "c", kind: SPAN_KINDS.client, attributes: { 'a"': "b", n: 1.5 } } },
    note: (span) => {
      span.set("own", 1);
      span.set("ö", true);
    },
    sdk: { name: "c", kind: SpanKind.CLIENT, attributes: { 'a"': "b", n: 1.5, own: 1, ö: true } },
  },
  ...ATTRIBUTES.map(([title, value]) => ({
    title: `the attribute of ${title}`,
    note: (span: SpanRecord) => span.set("a", value),
    sdk: { ...NONE, attributes: { a: value } },
  })),
  ...TIMES.map(([epochMs, startedAt, endedAt, startTime, endTime]) => ({
    title: `times of ${epochMs} and ${startedAt} to ${endedAt} ms`,
    ours: { epochMs, startedAt, endedAt },
    sdk: { ...NONE, startTime, endTime },
  })),
  { title: "a parent of ours", ours: { parent: LOCAL }, sdk: { ...NONE, ...below(LOCAL.spanId, false) } },
  { title: "a remote parent", ours: { remoteParentId: PARENT }, sdk: { ...NONE, ...below(PARENT, true) } },
  { title: "a trace state", ours: { state: 'a=1,b=2"' }, sdk: NONE, state: 'a=1,b=2"' },
  { title: "a failure", note: (span) => span.fail(), sdk: { ...NONE, status: { code: 2 } } },
  {
    title: "a failure with its text",
    note: (span) => span.fail('it "broke"\n'),
    sdk: { ...NONE, status: { code: 2, message: 'it "broke"\n' } },
  },
];

for (const one of CASES) {
  Deno.test(`pack reader: ${one.title}, as the SDK has it`, () => {
    const span = oursOf(one);
    const sdk = sdkOf(one, span.spanId);
    for (const { serializeRequest } of [JsonTraceSerializer, ProtobufTraceSerializer]) {
      assertEquals(serializeRequest([exported(span)]), serializeRequest([sdk]));
    }
  });
}

function oursOf({ ours: { endedAt = 0, shape = NAMED, ...start } = {}, note }: SpanCase): SpanRecord {
  const origin = { elapsed: () => endedAt, onEnd: () => {} };
  const span = spanOf(shape, { traceId: TRACE, ...start }, origin);
  note?.(span);
  span.end();
  return span;
}

function sdkOf({ sdk, state }: SpanCase, spanId: string): ReadableSpan {
  const context = { traceId: TRACE, spanId, traceFlags: 1 };
  const traced = state === undefined ? context : { ...context, traceState: createTraceState(state) };
  return {
    ...NONE,
    startTime: [0, 0],
    endTime: [0, 0],
    duration: [0, 0],
    status: { code: 0 },
    attributes: {},
    links: [],
    events: [],
    ended: true,
    resource: RESOURCE,
    instrumentationScope: { name: "test" },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
    spanContext: () => traced,
    ...sdk,
  };
}
