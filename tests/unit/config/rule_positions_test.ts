import { assertEquals } from "#assert";
import { LoadGatherer, partsOfLoad, ruleTexts, TextCompiler } from "../../../src/config/load_parts.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { compileRules } from "../../../src/ratelimit/rules/compile_rules.ts";
import type { DomainSource } from "../../../src/ratelimit/rule_source.ts";
import type { Rules } from "../../../src/ratelimit/rules/rules.ts";

const FILES: readonly (readonly [name: string, text: string])[] = [
  [
    "/rules/a.yaml",
    `domain: shop
descriptors:
- key: user
  rate_limit: { unit: minute, requests_per_unit: 2 }
- key: path
  descriptors:
  - value: /login
    key: method
    rate_limit: { unit: minute, requests_per_unit: 2 }
`,
  ],
  [
    "/rules/b.yaml",
    `
domain: shop
descriptors: [{ key: tenant, rate_limit: { unlimited: true } }]
`,
  ],
];
const IN_FILES = ["/rules/a.yaml:3", "/rules/a.yaml:7", "/rules/b.yaml:3"];

function sources(): DomainSource[] {
  return FILES.flatMap(([name, text]) => readRuleFile(name, text).source ?? []);
}

/** The ways on which sources become rules. */
const WAYS: Readonly<Record<string, (given: readonly DomainSource[]) => Rules | undefined>> = {
  "in one thread": (given) => compileRules(given).rules,
  "from the thread that reads files": (given) => {
    const gatherer = new LoadGatherer();
    const parts = [...partsOfLoad({ sources: given, problems: [], version: "" }, {})];
    return parts.map((part) => gatherer.take(part)).at(-1)?.rules;
  },
  "as texts for further threads": (given) => {
    const compiler = new TextCompiler();
    for (const text of ruleTexts(given)) compiler.take(text);
    return compiler.finish();
  },
};

for (const [name, rulesOf] of Object.entries(WAYS)) {
  Deno.test(`rule positions: each rule knows its file and line, ${name}`, () => {
    assertEquals(rulesOf(sources())?.limits.map(({ rule }) => `${rule?.file}:${rule?.line}`), IN_FILES);
  });
  Deno.test(`rule positions: the rules of a resource have no line, ${name}`, () => {
    const at = 'resource "shop"';
    const [source] = sources();
    const given = source &&
      [{ ...source, at, descriptors: source.descriptors.map((one) => ({ ...one, at })) }];
    const [limit] = rulesOf(given ?? [])?.limits ?? [];
    assertEquals([limit?.rule?.file, limit?.rule?.line], [at, 0]);
  });
}
