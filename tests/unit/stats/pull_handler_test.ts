import { assertEquals, assertThrows } from "#assert";
import { labelsOfTags } from "../../../src/stats/pull_reader.ts";
import { PullBed } from "../../harness/pull_bed.ts";

const histograms = (label: string) => `another name: label "${label}" belongs to histograms and summaries`;
const reserved = (label: string) => `a name without __ at the start: label "${label}" is reserved`;

type Texts = Readonly<Record<string, string>>;

/** Tags that become labels. */
const LABELS: Readonly<Record<string, readonly [tags: Texts, labels: Texts]>> = {
  "no tags": [{}, {}],
  "names that are labels, and some that are made so": [
    { env: "prod", _a: "1", "zone-a": "b", "9": "nine", domain: "own", lea: "x", Quantile: "y" },
    { env: "prod", _a: "1", zone_a: "b", _9: "nine", domain: "own", lea: "x", Quantile: "y" },
  ],
};

for (const [title, [tags, labels]] of Object.entries(LABELS)) {
  Deno.test(`pull tags: ${title}`, () => {
    assertEquals({ ...labelsOfTags(new Map(Object.entries(tags))) }, { ...labels });
  });
}

/** Names of tags that are refused, each of them with what was expected. */
const REFUSED: Readonly<Record<string, Texts>> = {
  "the label of buckets": { le: histograms("le") },
  "the label of quantiles": { quantile: histograms("quantile") },
  "the label that is the name": { __name__: reserved("__name__") },
  "two marks that become __": { "-.a": reserved("__a") },
  "no name": { "": "a name of letters, digits and _" },
  "several mistakes, each reported, and a label of two tags": {
    le: histograms("le"),
    "a-b": "",
    env: "",
    "a.b": 'another name: tag "a-b" has label "a_b" already',
  },
};

for (const [title, expected] of Object.entries(REFUSED)) {
  Deno.test(`pull tags: ${title}`, () => {
    const tags = new Map(Object.keys(expected).map((tag) => [tag, "x"]));
    const lines = Object.entries(expected).filter(([, state]) => state !== "").map(([tag, state]) => {
      return `Invalid EXTRA_TAGS ${JSON.stringify(tag)} with USE_PULL_METRICS: expected ${state}`;
    });
    assertEquals(assertThrows(() => labelsOfTags(tags)).message, lines.join("\n"));
  });
}

Deno.test("pull tags: an invalid tag is rejected before metrics are served", () => {
  const error = assertThrows(() => new PullBed({ extraTags: new Map([["le", "1"]]) }));
  assertEquals(error.message, `Invalid EXTRA_TAGS "le" with USE_PULL_METRICS: expected ${histograms("le")}`);
});
