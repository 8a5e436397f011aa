import { assertEquals } from "#assert";
import { type RequestLine, requestLines } from "../../../src/cli/request_lines.ts";

const ENTRY = { key: "k", value: "ü" };
const REQUEST = { domain: "d", descriptors: [{ entries: [ENTRY] }], hitsAddend: 0 };

function line(time: unknown, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ ...REQUEST, time, ...more });
}

/** The lines of a text that comes in pieces of so many bytes. */
async function linesOf(text: string | Uint8Array, size = 1_000_000): Promise<RequestLine[]> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => {
    return bytes.slice(index * size, (index + 1) * size);
  });
  return await Array.fromAsync(requestLines(ReadableStream.from(pieces)));
}

const TIMES: readonly [time: unknown, ms: number][] = [
  ["2026-01-31T12:00:00Z", 1_769_860_800_000],
  ["2026-01-31T13:00:00.25+01:00", 1_769_860_800_250],
  [1_769_860_800, 1_769_860_800_000],
  [1_769_860_800.5, 1_769_860_800_500],
  [0, 0],
];

for (const [time, ms] of TIMES) {
  Deno.test(`request lines: the time ${JSON.stringify(time)}`, async () => {
    assertEquals(await linesOf(line(time)), [{ number: 1, request: { ...REQUEST, time: ms } }]);
  });
}

const WANTED = "must be a time such as 2026-01-31T12:00:00Z, or seconds since the epoch";
const WRONG: readonly [line: string, problem: string][] = [
  ["x", "not valid JSON at column 1"],
  [`${line(1)} y`, `not valid JSON at column ${line(1).length + 2}`],
  ["[]", "must be an object"],
  [line(undefined), `time: is missing, it ${WANTED}`],
  [line(null), `time: is missing, it ${WANTED}`],
  [line(-1), `time: ${WANTED}`],
  [line(1_769_860_800_000), `time: ${WANTED}`],
  [line("yesterday"), `time: ${WANTED}`],
  [line("0001-01-01T00:00:00Z"), `time: ${WANTED}`],
  [line(true), `time: ${WANTED}`],
  [line(1, { descriptors: [{ entries: [{ key: 1 }] }] }), "descriptors[0].entries[0].key: must be a string"],
  [line(1, { hits: 1 }), "hits: unknown field"],
  [line(1, { domain: "" }), "domain: rate limit domain must not be empty"],
  [line(1, { descriptors: [] }), "descriptors: rate limit descriptor list must not be empty"],
  ["x".repeat(1_048_577), "longer than 1048576 bytes"],
];

for (const [text, problem] of WRONG) {
  Deno.test(`request lines: wrong is ${text.slice(0, 80)}`, async () => {
    assertEquals(await linesOf(`\n${text}\n${line(2)}\n`), [
      { number: 2, problem },
      { number: 3, request: { ...REQUEST, time: 2_000 } },
    ]);
  });
}

Deno.test("request lines: bytes that are not UTF-8 are those of a value, as in a call", async () => {
  const [before = "", after = ""] = JSON.stringify({ ...REQUEST, time: 1, domain: "BYTE" }).split("BYTE");
  const encoded = (text: string) => new TextEncoder().encode(text);
  const lines = await linesOf(Uint8Array.of(...encoded(before), 255, ...encoded(after), 10));
  assertEquals(lines, [{ number: 1, request: { ...REQUEST, time: 1_000, domain: "\udcff" } }]);
});

Deno.test("request lines: whatever the pieces they come in, with and without a last line break", async () => {
  const text = `${line(1)}\r\n\n  \n${line(2)}\n${line(3)}`;
  const expected = [[1, 1_000], [4, 2_000], [5, 3_000]].map(([number = 0, time = 0]) => {
    return { number, request: { ...REQUEST, time } };
  });
  for (const size of [1, 2, 3, 7, 64, 1_000]) {
    assertEquals(await linesOf(text, size), expected);
    assertEquals(await linesOf(`${text}\n`, size), expected);
  }
});

Deno.test("request lines: are read on request, and given up in the middle", async () => {
  let pulled = 0;
  let cancelled = false;
  const piece = new TextEncoder().encode(`${line(1)}\n`.repeat(10));
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled++;
      controller.enqueue(piece);
    },
    cancel: () => void (cancelled = true),
  });
  let read = 0;
  for await (const _ of requestLines(stream)) if (++read === 1_000) break;
  assertEquals([cancelled, pulled <= 102], [true, true]);
});
