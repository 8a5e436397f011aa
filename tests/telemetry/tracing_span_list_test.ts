import { assertEquals } from "@std/assert";
import { attributeKey } from "../../src/telemetry/tracing_attribute_text.ts";
import { readSpanList, SpanListWriter } from "../../src/telemetry/tracing_span_list.ts";
import { SpanRecord, spanShape } from "../../src/telemetry/tracing_span_record.ts";

/** A span of a shape of its own, whose one attribute is this text. */
function spanOf(name: string, text: string): SpanRecord {
  const span = new SpanRecord({ elapsed: () => 0, onEnd: () => {} }, {
    shape: spanShape(name, 1),
    ...{ traceId: "", spanId: "", state: "", aboveId: "", isRemote: false, epochMs: 0, startedAt: 0 },
  });
  span.set(attributeKey("text"), text);
  return span;
}

function textsIn(writer: SpanListWriter): unknown[] {
  const decoder = new TextDecoder();
  return readSpanList(structuredClone(writer.take())).map(({ shape, rest }) => {
    const { name, attributes } = JSON.parse(decoder.decode(shape) + decoder.decode(rest));
    return [name, attributes[0].value.stringValue];
  });
}

Deno.test("span list: spans are read as they were put in, each with its shape", () => {
  const writer = new SpanListWriter();
  const names = [..."abcdefghijklmnopqrstuvwxyz", "a", "z", "7", "é"];
  const texts = ["plain", "", "line\nbreak", "äß€漢😀", "0", '"', "7,8"];
  const wanted = names.map((name, at) => [name, texts[at % texts.length] ?? ""] as const);
  for (const [name, text] of wanted) writer.add(spanOf(name, text));
  assertEquals([writer.count, textsIn(writer)], [wanted.length, wanted.map((one) => [...one])]);
});

Deno.test("span list: what was taken is not in the next list", () => {
  const writer = new SpanListWriter();
  writer.add(spanOf("a", "1"));
  writer.take();
  assertEquals([writer.count, textsIn(writer)], [0, []]);
  writer.add(spanOf("b", "2"));
  writer.add(spanOf("b", "3"));
  const list = writer.take();
  assertEquals([list.shapes.length, readSpanList(list).length], [1, 2]);
});
