import { assertEquals, assertThrows } from "@std/assert";
import { labelsOfTags } from "../../../src/stats/pull_reader.ts";
import { PullBed } from "../../harness/pull_bed.ts";

const histograms = (label: string) => `another name: label "${label}" belongs to histograms and summaries`;
const reserved = (label: string) => `a name without __ at the start: label "${label}" is reserved`;

interface Row {
  readonly title: string;
  readonly tags: Readonly<Record<string, string>>;
  /** The labels, or what was expected by tag. */
  readonly becomes: Readonly<Record<string, string>> | readonly (readonly [tag: string, state: string])[];
}

const TABLE: readonly Row[] = [
  { title: "no tags", tags: {}, becomes: {} },
  {
    title: "names that are labels, and some that are made so",
    tags: { env: "prod", _a: "1", "zone-a": "b", "9": "nine", domain: "own", lea: "x", Quantile: "y" },
    becomes: { env: "prod", _a: "1", zone_a: "b", _9: "nine", domain: "own", lea: "x", Quantile: "y" },
  },
  { title: "the label of buckets", tags: { le: "1" }, becomes: [["le", histograms("le")]] },
  {
    title: "the label of quantiles",
    tags: { quantile: "1" },
    becomes: [["quantile", histograms("quantile")]],
  },
  {
    title: "the label that is the name",
    tags: { __name__: "x" },
    becomes: [["__name__", reserved("__name__")]],
  },
  { title: "two marks that become __", tags: { "-.a": "x" }, becomes: [["-.a", reserved("__a")]] },
  {
    title: "no name",
    tags: { "": "x" },
    becomes: [["", "a name of letters, digits and _"]],
  },
  {
    title: "several mistakes, each reported, and a label of two tags",
    tags: { le: "1", "a-b": "2", env: "3", "a.b": "4" },
    becomes: [
      ["le", histograms("le")],
      ["a.b", 'another name: tag "a-b" has label "a_b" already'],
    ],
  },
];

for (const { title, tags, becomes } of TABLE) {
  Deno.test(`pull tags: ${title}`, () => {
    const given = new Map(Object.entries(tags));
    if (!Array.isArray(becomes)) return assertEquals({ ...labelsOfTags(given) }, { ...becomes });
    const lines = becomes.map(([tag, state]) => {
      return `Invalid EXTRA_TAGS ${JSON.stringify(tag)} with USE_PULL_METRICS: expected ${state}`;
    });
    assertEquals(assertThrows(() => labelsOfTags(given)).message, lines.join("\n"));
  });
}

Deno.test("pull tags: an invalid tag is rejected before metrics are served", () => {
  const error = assertThrows(() => new PullBed({ extraTags: new Map([["le", "1"]]) }));
  assertEquals(error.message, `Invalid EXTRA_TAGS "le" with USE_PULL_METRICS: expected ${histograms("le")}`);
});
