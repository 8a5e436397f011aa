import { assertEquals } from "#assert";
import { problemText } from "../../../src/base/problem.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { yamlText } from "../../../src/yaml/document.ts";
import type { DescriptorSource } from "../../../src/ratelimit/rule_source.ts";

const PLAIN = "domain: d\ndescriptors:\n- key: it's\n  rate_limit:\n    unit: second\n" +
  "    requests_per_unit: 16\n";
const SAME = { domain: "d", descriptors: [{ key: "it's", value: "", count: 16 }], problems: [] };

/** Texts that the parser of Go reads as the plain one. */
const EQUAL: Readonly<Record<string, string>> = {
  plain: PLAIN,
  "an empty last document": `${PLAIN}---\n`,
  "an empty last document without a line end": `${PLAIN}---`,
  "several empty documents": `${PLAIN}---\n---\n# later\n---\n`,
  "a null last document": `${PLAIN}--- ~\n`,
  "an empty list at the end": `${PLAIN}---\n[]\n`,
  "end marks": `${PLAIN}...\n---\n...\n`,
  "a first mark": `# rules\n---\n${PLAIN}`,
  "a directive": `%YAML 1.1\n---\n${PLAIN}`,
  "carriage returns": PLAIN.replaceAll("\n", "\r"),
  "line ends of Windows": PLAIN.replaceAll("\n", "\r\n"),
  "line ends that were converted twice": PLAIN.replaceAll("\n", "\r\r\n"),
  "one carriage return": PLAIN.replace("d\n", "d\r"),
  "a byte order mark": `\ufeff${PLAIN}`,
  "an escaped apostrophe": PLAIN.replace("it's", '"it\\\'s"'),
  "a number in capital hexadecimal": PLAIN.replace("16", "0X1_0"),
  "a number in capital octal": PLAIN.replace("16", "0O20"),
  "a number in capital binary": PLAIN.replace("16", "0B1_0000"),
  "a number with separators": PLAIN.replace("16", "1_6_"),
  "a number with a sign": PLAIN.replace("16", "+16"),
  "a tagged number": PLAIN.replace("16", '!!int "16"'),
};

function read(text: string) {
  const { source, problems } = readRuleFile("r.yaml", text);
  const short = ({ key, value, rateLimit }: DescriptorSource) => {
    return { key, value, count: rateLimit?.requestsPerUnit };
  };
  return {
    domain: source?.domain,
    descriptors: source?.descriptors.map(short),
    problems: problems.map(problemText),
  };
}

for (const [name, text] of Object.entries(EQUAL)) {
  Deno.test(`yaml 1.1: ${name}`, () => assertEquals(read(text), SAME));
}

Deno.test("yaml 1.1: an escaped apostrophe keeps backslashes, other escapes and positions", () => {
  const text = `{domain: "a\\\\'b\\'\\x41\\\\\\'", extra: x}\n`;
  const { domain, problems } = read(text);
  assertEquals([domain, problems[0]], [
    "a\\'b'A\\'",
    "r.yaml:1:29: unknown key 'extra'; expected one of domain, descriptors",
  ]);
});

Deno.test("yaml 1.1: a flag with a tag and quotes, and minus zero", () => {
  const text = `domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: -0}, ` +
    `shadow_mode: !!bool "yes"}]\n`;
  const { source, problems } = readRuleFile("r.yaml", text);
  const [first] = source?.descriptors ?? [];
  assertEquals([first?.shadowMode, first?.rateLimit?.requestsPerUnit, problems], [true, 0, []]);
});

Deno.test("yaml: half of a character is an error", () => {
  assertEquals(
    read('domain: "a\\ud83d"\n').problems[0],
    "r.yaml:1:9: domain: an escape such as \\ud83d is half of a " +
      "character; write the character, or \\U0001f600",
  );
});

/** A value of metadata, and what the parser of Go makes of it. */
const METADATA: readonly [text: string, json: unknown][] = [
  ["yes", true],
  ["off", false],
  ["~", null],
  ["1_000", 1000],
  ["0X1F", 31],
  ["-0b11", -3],
  ["1_0.5", 10.5],
  ["1.", 1],
  ["2026-11-21", "2026-11-21"],
  ["2026-11-21T00:00:00Z", "2026-11-21T00:00:00Z"],
  ["12:30", "12:30"],
  ["_1", "_1"],
  ["0x", "0x"],
  ["'yes'", "yes"],
  ["!!int '5'", 5],
  ["!!str 5", "5"],
  ["12345678901234567890", 12345678901234567890],
];

for (const [text, json] of METADATA) {
  Deno.test(`yaml 1.1, metadata: ${text}`, () => {
    const file =
      `domain: d\ndescriptors: [{key: k, metadata: {a: ${text}}, rate_limit: {unlimited: true}}]\n`;
    const { source, problems } = readRuleFile("r.yaml", file);
    assertEquals([source?.descriptors[0]?.metadata, problems], [{ a: json }, []]);
  });
}

Deno.test("yaml, metadata: a number with a leading zero is an error", () => {
  assertEquals(
    read("domain: d\ndescriptors: [{key: k, metadata: {a: 017}, rate_limit: {unlimited: true}}]\n").problems,
    [
      "r.yaml:2:38: descriptors[0].metadata.a: expected a value of JSON, got the number 017; put it in quotes",
    ],
  );
});

Deno.test("yaml: a file in UTF-16 has a byte order mark; other bytes are no text", () => {
  const units = Uint16Array.from(`\ufeff${PLAIN}`, (character) => character.charCodeAt(0));
  const little = new Uint8Array(units.buffer);
  const big = new Uint8Array(Uint16Array.from(units, (unit) => unit << 8 | unit >> 8).buffer);
  const texts = [little, big, new TextEncoder().encode(PLAIN), Uint8Array.of(0x61, 0xff)].map(yamlText);
  assertEquals(texts, [PLAIN, PLAIN, PLAIN, undefined]);
});
