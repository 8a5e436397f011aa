import { assertEquals } from "@std/assert";
import { attributeKey } from "../../src/telemetry/tracing_attribute_text.ts";
import { SpanListWriter } from "../../src/telemetry/tracing_span_list.ts";
import { SpanRecord, spanShape } from "../../src/telemetry/tracing_span_record.ts";
import { textsIn } from "./tracing_exporter_double.ts";

/** A span of a shape of its own, whose one attribute is this text. */
function spanOf(name: string, text: string): SpanRecord {
  const span = new SpanRecord({ elapsed: () => 0, onEnd: () => {} }, {
    shape: spanShape(name, 1),
    ...{ traceId: "", spanId: "", state: "", aboveId: "", isRemote: false, epochMs: 0, startedAt: 0 },
  });
  span.set(attributeKey("text"), text);
  return span;
}

function takenFrom(writer: SpanListWriter): unknown[] {
  return textsIn(structuredClone(writer.take())).map((text) => {
    const { name, attributes } = JSON.parse(text);
    return [name, attributes[0].value.stringValue];
  });
}

Deno.test("span list: spans are read as they were put in, each with its name", () => {
  const writer = new SpanListWriter();
  const names = [..."abcdefghijklmnopqrstuvwxyz", "a", "z", "7", "é"];
  const texts = ["plain", "", "line\nbreak", "äß€漢😀", "0", '"', "7,8"];
  const wanted = names.map((name, at) => [name, texts[at % texts.length] ?? ""] as const);
  for (const [name, text] of wanted) writer.add(spanOf(name, text));
  assertEquals([writer.count, takenFrom(writer)], [wanted.length, wanted.map((one) => [...one])]);
});

Deno.test("span list: what was taken is not in the next list", () => {
  const writer = new SpanListWriter();
  writer.add(spanOf("a", "1"));
  writer.take();
  assertEquals([writer.count, takenFrom(writer)], [0, []]);
  writer.add(spanOf("b", "2"));
  writer.add(spanOf("b", "3"));
  const list = writer.take();
  assertEquals([list.count, textsIn(list).length], [2, 2]);
});
