import { assertEquals, assertThrows } from "@std/assert";
import { attributeKey } from "../../../src/telemetry/tracing_attribute_text.ts";
import { renderSpans } from "../../../src/telemetry/tracing_span_list.ts";
import { SpanPacker } from "../../../src/telemetry/tracing_span_pack.ts";
import { SpanRecord, spanShape } from "../../../src/telemetry/tracing_span_record.ts";
import { spanNamed, textsIn } from "../../harness/tracing_exporter_double.ts";

/** A span of a shape of its own, whose one attribute is this text. */
function spanOf(name: string, text: string): SpanRecord {
  const span = new SpanRecord({ elapsed: () => 0, onEnd: () => {} }, {
    shape: spanShape(name, 1),
    ...{ traceId: "", spanId: "", state: "", aboveId: "", isRemote: false, epochMs: 0, startedAt: 0 },
  });
  span.set(attributeKey("text"), text);
  return span;
}

function takenFrom(packer: SpanPacker): unknown[] {
  return textsIn(structuredClone(packer.take())).map((text) => {
    const { name, attributes } = JSON.parse(text);
    return [name, attributes[0].value.stringValue];
  });
}

Deno.test("span pack: spans are read as they were put in, each with its name", () => {
  const packer = new SpanPacker();
  const names = [..."abcdefghijklmnopqrstuvwxyz", "a", "z", "7", "é"];
  const texts = ["plain", "", "line\nbreak", "äß€漢😀", "0", '"', "7,8"];
  const wanted = names.map((name, at) => [name, texts[at % texts.length] ?? ""] as const);
  for (const [name, text] of wanted) packer.add(spanOf(name, text));
  assertEquals([packer.count, takenFrom(packer)], [wanted.length, wanted.map((one) => [...one])]);
});

Deno.test("span pack: what was taken is not in the next one", () => {
  const packer = new SpanPacker();
  packer.add(spanOf("a", "1"));
  packer.take();
  assertEquals([packer.count, takenFrom(packer)], [0, []]);
  packer.add(spanOf("b", "2"));
  packer.add(spanOf("b", "3"));
  const pack = packer.take();
  assertEquals([pack.count, textsIn(pack).length], [2, 2]);
});

Deno.test("span pack: what each span has beside the others stays its own", () => {
  const packer = new SpanPacker();
  const [key, other] = [attributeKey("k"), attributeKey("o")];
  const request = {
    domain: "d",
    hitsAddend: 0,
    descriptors: [
      {
        entries: [{ key: "a", value: "1" }],
        limit: { requestsPerUnit: 7, unit: "DAY" as const },
        hitsAddend: 0,
      },
      { entries: [], isNegativeHits: true },
    ],
  };
  const notes: readonly (readonly (readonly [typeof key, Parameters<SpanRecord["set"]>[1]])[])[] = [
    [],
    [[key, request], [other, 1.5]],
    [[other, ["x", "y"]], [key, request]],
    [[key, "after"]],
  ];
  for (const [index, own] of notes.entries()) {
    const span = spanNamed(`${index}`);
    for (const [name, value] of own) span.set(name, value);
    if (index === 1) span.fail("broke");
    packer.add(span);
  }
  const text = 'domain:"d" descriptors:{entries:{key:"a" value:"1"} limit:{requests_per_unit:7 unit:DAY} ' +
    "hits_addend:{value:0}} descriptors:{is_negative_hits:true}";
  const asked = { key: "k", value: { stringValue: text } };
  const values = [{ stringValue: "x" }, { stringValue: "y" }];
  const found = textsIn(structuredClone(packer.take())).map((one) => {
    const { name, attributes, status } = JSON.parse(one);
    return [name, attributes, status];
  });
  assertEquals(found, [
    ["0", [], {}],
    ["1", [asked, { key: "o", value: { doubleValue: 1.5 } }], { code: 2, message: "broke" }],
    ["2", [{ key: "o", value: { arrayValue: { values } } }, asked], {}],
    ["3", [{ key: "k", value: { stringValue: "after" } }], {}],
  ]);
});

Deno.test("span pack: one that says less than its spans need is refused", () => {
  const packer = new SpanPacker();
  packer.add(spanOf("a", "1"));
  const pack = packer.take();
  for (const less of [{ numbers: [] }, { text: "" }, { shapes: [] }, { keys: [] }]) {
    assertThrows(() => renderSpans({ ...pack, ...less }), "reading too little must fail");
  }
});
