import { assertEquals } from "#assert";
import type { RateLimitRequest } from "../../../src/ratelimit/request.ts";
import { MAX_REQUEST_TEXT, requestNote, requestText } from "../../../src/telemetry/tracing_request_text.ts";
import { exported } from "../../harness/tracing_bed.ts";
import { spanNamed } from "../../harness/span_samples.ts";

const CASES: readonly [title: string, request: RateLimitRequest, text: string][] = [
  [
    "everything",
    {
      domain: "d",
      hitsAddend: 2,
      descriptors: [
        { entries: [{ key: "a", value: "1" }, { key: "b", value: "" }], hitsAddend: 0, isNegativeHits: true },
        { entries: [], limit: { requestsPerUnit: 5, unit: "MINUTE" } },
        { entries: [], limit: { requestsPerUnit: 5, unit: undefined } },
      ],
    },
    'domain:"d" ' +
    'descriptors:{entries:{key:"a" value:"1"} entries:{key:"b" value:""} hits_addend:{value:0} is_negative_hits:true} ' +
    "descriptors:{limit:{requests_per_unit:5 unit:MINUTE}} descriptors:{limit:{requests_per_unit:5}} hits_addend:2",
  ],
  [
    "bytes that are not UTF-8",
    { domain: "d\udcff", hitsAddend: 0, descriptors: [] },
    'domain:"d\\\\xff"',
  ],
  ["what has to be escaped", { domain: 'a"\n', hitsAddend: 0, descriptors: [] }, 'domain:"a\\"\\n"'],
];

for (const [title, request, text] of CASES) {
  Deno.test(`request text: ${title}`, () => {
    // A small one is rendered when its text is needed.
    assertEquals([requestText(request), requestNote(request)], [text, request]);
    // It comes through another thread as it was.
    const span = spanNamed("s");
    span.set("request", requestNote(request));
    assertEquals(exported(span).attributes, { request: text });
  });
}

Deno.test("request text: a long one is cut, whatever is long in it", () => {
  const entry = { key: "k", value: "v".repeat(100_000) };
  const descriptors = Array.from({ length: 1_000 }, () => ({ entries: [{ key: "k", value: "v" }] }));
  const long: readonly RateLimitRequest[] = [
    { domain: "d".repeat(100_000), hitsAddend: 0, descriptors: [] },
    { domain: "d", hitsAddend: 0, descriptors: [{ entries: [entry] }] },
    { domain: "d", hitsAddend: 0, descriptors },
  ];
  const texts = long.map(requestText);
  assertEquals(texts.map(({ length }) => length), [MAX_REQUEST_TEXT, MAX_REQUEST_TEXT, MAX_REQUEST_TEXT]);
  assertEquals(texts.map((text) => text.endsWith("…")), [true, true, true]);
  // Nothing large is kept for its text.
  assertEquals(long.map(requestNote), texts);
});

Deno.test("a text is not cut within a character", () => {
  for (const start of ["", "x"]) {
    const entries = [{ key: "k", value: start + "😀".repeat(3_000) }];
    const text = requestText({ domain: "d", descriptors: [{ entries }], hitsAddend: 0 });
    assertEquals([text.isWellFormed(), text.length <= MAX_REQUEST_TEXT], [true, true]);
  }
});
