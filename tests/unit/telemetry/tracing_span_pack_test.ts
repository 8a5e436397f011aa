import { assertEquals, assertThrows } from "#assert";
import { SPAN_KINDS, type SpanRecord, type SpanValue } from "../../../src/telemetry/tracing_span_record.ts";
import { SpanPacker } from "../../../src/telemetry/tracing_span_pack.ts";
import { exportedAll } from "../../harness/tracing_bed.ts";
import { namesIn, spanNamed, spanOf } from "../../harness/span_samples.ts";

/** A span with its own shape and this text as its attribute. */
function spanWith(name: string, text: string): SpanRecord {
  const span = spanOf({ name, kind: SPAN_KINDS.server });
  span.set("text", text);
  return span;
}

function takenFrom(packer: SpanPacker): unknown[] {
  return exportedAll(structuredClone(packer.take())).map((
    { name, attributes },
  ) => [name, attributes["text"]]);
}

Deno.test("span pack: spans are read as they were put in, each with its name", () => {
  const packer = new SpanPacker();
  const names = [..."abcdefghijklmnopqrstuvwxyz", "a", "z", "7", "é"];
  const texts = ["plain", "", "line\nbreak", "äß€漢😀", "0", '"', "7,8"];
  const expected = names.map((name, at) => [name, texts[at % texts.length] ?? ""] as const);
  for (const [name, text] of expected) packer.add(spanWith(name, text));
  assertEquals([packer.count, takenFrom(packer)], [expected.length, expected.map((one) => [...one])]);
});

Deno.test("span pack: a pack contains only spans since the last one", () => {
  const packer = new SpanPacker();
  packer.add(spanWith("a", "1"));
  packer.take();
  assertEquals([packer.count, takenFrom(packer)], [0, []]);
  packer.add(spanWith("b", "2"));
  packer.add(spanWith("b", "3"));
  const pack = packer.take();
  assertEquals([pack.count, namesIn(pack).length], [2, 2]);
});

Deno.test("span pack: attributes and failures stay with their spans", () => {
  const packer = new SpanPacker();
  const [key, other] = ["k", "o"];
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
  const notes: readonly (readonly (readonly [string, SpanValue])[])[] = [
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
  const found = exportedAll(structuredClone(packer.take()));
  assertEquals(found.map(({ name, attributes, status }) => [name, attributes, status]), [
    ["0", {}, { code: 0 }],
    ["1", { k: text, o: 1.5 }, { code: 2, message: "broke" }],
    ["2", { o: ["x", "y"], k: text }, { code: 0 }],
    ["3", { k: "after" }, { code: 0 }],
  ]);
});

Deno.test("span pack: an incomplete pack is rejected", () => {
  const packer = new SpanPacker();
  packer.add(spanWith("a", "1"));
  const pack = packer.take();
  for (const less of [{ numbers: [] }, { text: "" }, { shapes: [] }, { keys: [] }]) {
    assertThrows(() => exportedAll({ ...pack, ...less }), "reading too little must fail");
  }
});
