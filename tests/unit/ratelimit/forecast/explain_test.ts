import { assert, assertEquals, assertNotEquals } from "#assert";
import { MemoryCache } from "../../../../src/cache/memory_cache.ts";
import type { AnyHit, Counter } from "../../../../src/ratelimit/decision/counter_cache.ts";
import {
  type Descriptor,
  parseDescriptorText,
  type RateLimitRequest,
} from "../../../../src/ratelimit/request.ts";
import { explain, type ExplainedDescriptor } from "../../../../src/ratelimit/forecast/explain.ts";
import { walkRules } from "../../../../src/ratelimit/forecast/explain_walk.ts";
import { instantText } from "../../../../src/ratelimit/decision/window.ts";
import { matchLimit } from "../../../../src/ratelimit/rules/match_rules.ts";
import type { Rules } from "../../../../src/ratelimit/rules/rules.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";
import { bySize, SOAK_SEED } from "../../../soak/soak_options.ts";
import { PLAIN_POLICY, rulesOf, ServiceFixture } from "../../../harness/service_fixture.ts";

const NOW_SECONDS = 1_700_000_000;
const CONTEXT = { nowSeconds: NOW_SECONDS, random: () => 0, policy: PLAIN_POLICY };

const RULES = rulesOf({
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: minute, requests_per_unit: 10 }
- key: user
  value: ad*
  rate_limit: { unit: hour, requests_per_unit: 20 }
- key: user
  value: "*min"
  rate_limit: { unit: hour, requests_per_unit: 21 }
- key: user
  value: admin
  descriptors:
  - key: path
    shadow_mode: true
    quota_mode: true
    rate_limit: { unit: day, unit_multiplier: 2, requests_per_unit: 30, name: paths, replaces: [{ name: hosts }] }
- key: host
  rate_limit: { unit: second, requests_per_unit: 5, name: hosts }
- key: free
  rate_limit: { unlimited: true }
`,
});

function descriptor(text: string, rest: Partial<Descriptor> = {}): Descriptor {
  const entries = parseDescriptorText(text);
  assert(typeof entries !== "string");
  return { entries, ...rest };
}

function explained(descriptors: readonly Descriptor[], domain = "shop"): readonly ExplainedDescriptor[] {
  return explain(RULES, { domain, descriptors, hitsAddend: 1 }, CONTEXT).explanation.descriptors;
}

function first(text: string, domain?: string): ExplainedDescriptor {
  const [only] = explained([descriptor(text)], domain);
  assert(only !== undefined);
  return only;
}

Deno.test("explain: each rule of the key is shown with the reason why it takes the entry or does not", () => {
  const steps: readonly (readonly [text: string, rows: readonly (readonly [string, boolean, string])[]])[] = [
    ["user=bob", [
      ["user", true, "it matches any value, and no rule with a value matches"],
      ["user_ad*", false, "its pattern does not match"],
      ["user_*min", false, "its pattern does not match"],
      ["user_admin", false, "another value"],
    ]],
    ["user=adamin", [
      ["user_ad*", true, "first matching pattern"],
      ["user_*min", false, "its pattern matches, but an earlier pattern takes precedence"],
      ["user", false, "it matches any value, but a rule with a matching value takes precedence"],
      ["user_admin", false, "another value"],
    ]],
    ["user=admin", [
      ["user_admin", true, "exact value"],
      ["user_ad*", false, "its pattern matches, but an exact value takes precedence"],
      ["user_*min", false, "its pattern matches, but an exact value takes precedence"],
      ["user", false, "it matches any value, but a rule with a matching value takes precedence"],
    ]],
    ["user=ad*", [
      ["user_ad*", true, "exact value"],
      ["user", false, "it matches any value, but a rule with a matching value takes precedence"],
      ["user_*min", false, "its pattern does not match"],
      ["user_admin", false, "another value"],
    ]],
  ];
  for (const [text, rows] of steps) {
    const [level] = first(text).levels;
    const shown: typeof rows = (level?.rules ?? []).map(({ rule, chosen, why }) => [rule, chosen, why]);
    assertEquals(shown, rows, text);
    assertEquals([level?.furtherRules, level?.otherKeys, level?.furtherKeys], [0, ["host", "free"], 0], text);
  }
});

Deno.test("explain: where a walk ends without a limit, and why", () => {
  const ends: readonly (readonly [text: string, levels: number, why: string, domain?: string])[] = [
    ["unknown=x", 1, 'no rule of level 1 has the key "unknown"'],
    ["user=admin,path=/a,more=1", 2, 'nothing is nested in the rule "path"'],
    ["user=bob,path=/a", 1, 'nothing is nested in the rule "user"'],
    ["user=admin,host=a", 2, 'no rule of level 2 has the key "host"'],
    [
      "user=admin",
      1,
      'the rule "user_admin" has no limit: nested rules require more entries',
    ],
    ["user=bob", 0, "unknown domain", "other"],
  ];
  for (const [text, count, why, domain] of ends) {
    const { outcome, levels, ...rest } = first(text, domain);
    assertEquals([outcome, levels.length, rest.why, rest.limit], ["none", count, why, undefined], text);
  }
  const [without] = explained([{ entries: [] }]);
  assertEquals([without?.outcome, without?.why], ["none", "the descriptor has no entries"]);
  const missed = rulesOf({ "a.yaml": "domain: shop\ndescriptors:\n- key: k\n  value: v\n" });
  const request = { domain: "shop", hitsAddend: 1, descriptors: [descriptor("k=w"), descriptor("k=v")] };
  const { descriptors } = explain(missed, request, CONTEXT).explanation;
  assertEquals(descriptors.map(({ why }) => why), [
    "no rule of level 1 matches this value",
    'the rule "k_v" has no limit',
  ]);
});

Deno.test("explain: a limit is shown with its rule, its counter and the end of its window", () => {
  const { outcome, limit, cacheKey, windowEnds } = first("user=admin,path=/a");
  assertEquals({ outcome, limit, cacheKey, windowEnds }, {
    outcome: "limited",
    limit: {
      rule: "shop.user_admin.path",
      override: false,
      unlimited: false,
      name: "paths",
      requestsPerUnit: 30,
      unit: "DAY",
      windowSeconds: 172_800,
      shadowMode: true,
      quotaMode: true,
      replaces: ["hosts"],
    },
    cacheKey: "shop_user_admin_path_/a_1699833600",
    windowEnds: "2023-11-15T00:00:00Z",
  });
});

/** Outcome, rule and counter of each descriptor, and what replaces it. */
function shortOf(descriptors: readonly ExplainedDescriptor[]): string[] {
  return descriptors.map(({ outcome, cacheKey, limit, replacedBy }) => {
    const rule = limit?.override === true ? "override" : limit?.rule;
    const by = replacedBy?.map((one) => `by ${one.descriptor} ${one.rule}`) ?? [];
    return [outcome, rule, cacheKey, ...by].join(" ").trim();
  });
}

Deno.test("explain: unlimited, replaced, and brought along by the request", () => {
  const limit = { requestsPerUnit: 7, unit: "MINUTE" } as const;
  const descriptors = explained([
    descriptor("free=x"),
    descriptor("host=a"),
    descriptor("user=admin,path=/a"),
    descriptor("host=b", { limit }),
  ]);
  assertEquals(shortOf(descriptors), [
    "unlimited shop.free",
    "replaced shop.host  by 2 shop.user_admin.path",
    "limited shop.user_admin.path shop_user_admin_path_/a_1699833600",
    "limited override shop_host_b_1699999980",
  ]);
});

Deno.test("explain: a level of very many rules is shown in part, and its choice is always among them", () => {
  const values = Array.from({ length: 3_000 }, (_, index) => index === 2_500 ? "late*" : `v${index}`);
  const rules = rulesOf({
    "a.yaml": JSON.stringify({
      domain: "d",
      descriptors: values.map((value) => {
        return { key: "k", value, rate_limit: { unit: "hour", requests_per_unit: 1 } };
      }),
    }),
  });
  for (const [value, rule] of [["later", "k_late*"], ["v2999", "k_v2999"], ["v0", "k_v0"]] as const) {
    const request = { domain: "d", hitsAddend: 1, descriptors: [descriptor(`k=${value}`)] };
    const [level] = explain(rules, request, CONTEXT).explanation.descriptors[0]?.levels ?? [];
    assertEquals([level?.rules[0]?.rule, level?.rules[0]?.chosen], [rule, true]);
    assertEquals([level?.rules.length, level?.furtherRules], [20, 2_980]);
  }
});

/** A cache that keeps which counters it was asked to move. */
class KeptKeys extends MemoryCache {
  readonly keys: string[] = [];

  override counterOf(hit: AnyHit): Counter {
    this.keys.push(hit.key);
    return super.counterOf(hit);
  }
}

const KEYS = ["a", "b"];
const VALUES = ["", "", "x", "xy", "x*", "*y", "*", "x*y", { regex: "^x+.$" }, { regex: "q|y$" }, {
  in: ["q", "xzy"],
}];

/** Rules and requests that meet each other often. */
class Chance {
  readonly #random: () => number;
  #names = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  pick<T>(list: readonly T[], fallback: T): T {
    return list[Math.floor(this.#random() * list.length)] ?? fallback;
  }

  level(depth: number, parentHasLimit = false): unknown[] {
    const seen = new Set<string>();
    return Array.from({ length: 6 }).flatMap(() => {
      const [key, value] = [this.pick(KEYS, "a"), this.pick(VALUES, "")];
      const text = `${key}_${JSON.stringify(value)}`;
      if (seen.has(text)) return [];
      seen.add(text);
      const [hasSeveral, hasLimit] = [typeof value !== "string" || value.endsWith("*"), this.#random() < 0.7];
      const takesParents = parentHasLimit && !hasLimit && value === "";
      return [{
        key,
        ...(value === "" ? {} : { value }),
        ...(hasSeveral && this.#random() < 0.3 ? { share_threshold: true } : {}),
        ...(hasLimit ? { rate_limit: this.#limit() } : {}),
        ...(takesParents ? { fallback: "parent" } : {}),
        ...(depth > 1 && this.#random() < 0.6
          ? { descriptors: this.level(depth - 1, hasLimit || takesParents) }
          : {}),
      }];
    });
  }

  request(): RateLimitRequest {
    const descriptors = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => ({
      entries: Array.from({ length: Math.floor(this.#random() * 4) }, () => {
        return {
          key: this.pick([...KEYS, "c"], "a"),
          value: this.pick(["", "x", "xy", "y", "xzy", "q"], ""),
        };
      }),
      ...(this.#random() < 0.1 ? { limit: { requestsPerUnit: 5, unit: "HOUR" as const } } : {}),
    }));
    return { domain: this.#random() < 0.95 ? "d" : "unknown", descriptors, hitsAddend: 1 };
  }

  #limit(): unknown {
    const name = `r${this.#names++}`;
    if (this.#random() < 0.1) return { unlimited: true, name };
    const others = Array.from({ length: 12 }, (_, index) => `r${index * 3}`).filter((one) => one !== name);
    const replaces = this.#random() < 0.3 ? { replaces: others.map((other) => ({ name: other })) } : {};
    return { unit: this.pick(["second", "hour"], "hour"), requests_per_unit: 9, name, ...replaces };
  }
}

/** The names of the rules that a walk chose, as a rule's full key has them. */
function chosenKey(domain: string, { levels }: ExplainedDescriptor): string {
  const names = levels.map(({ rules }) => rules.find(({ chosen }) => chosen)?.rule ?? "?");
  return [domain, ...names].join(".");
}

Deno.test("explain says what the matcher finds and what the service counts, for random rules and requests", async () => {
  const outcomes = new Map<string, number>();
  let parents = 0;
  for (let round = 1; round <= bySize({ short: 40, full: 400 }); round++) {
    // The first 40 reach every outcome.
    const seed = round <= 40 ? round : SOAK_SEED + round;
    const chance = new Chance(seed);
    const file = JSON.stringify({ domain: "d", descriptors: chance.level(3) });
    const rules: Rules = rulesOf({ "d.yaml": file });
    const cache = new KeptKeys({ maxKeys: 1_000, clock: new FakeClock() });
    await using fixture = new ServiceFixture({ files: { "d.yaml": file }, cache, at: NOW_SECONDS });
    for (let turn = 0; turn < 25; turn++) {
      const request = chance.request();
      cache.keys.length = 0;
      const { statuses } = await fixture.service.shouldRateLimit(request);
      const { explanation } = explain(rules, request, CONTEXT);
      const note = `seed ${seed}: ${JSON.stringify(request)}`;
      const keys = explanation.descriptors.flatMap(({ cacheKey }) => cacheKey ?? []);
      assertEquals(keys, cache.keys, note);
      for (const [index, one] of explanation.descriptors.entries()) {
        outcomes.set(one.outcome, (outcomes.get(one.outcome) ?? 0) + 1);
        const current = statuses[index]?.currentLimit;
        const isLimited = one.outcome === "limited";
        assertEquals(isLimited ? one.limit?.name ?? "" : undefined, current?.name, note);
        const { entries, limit } = request.descriptors[index] ?? { entries: [] };
        const table = rules.domains.get(request.domain);
        if (limit !== undefined || table === undefined) continue;
        const matched = matchLimit(table, entries);
        assert(walkRules(table, entries).limit === matched, note);
        const key = matched?.rule?.fullKey;
        if (matched === undefined) continue;
        const isParents = matched.rule?.path.length !== entries.length;
        if (isParents) parents++;
        const chosen = chosenKey("d", one);
        assertEquals([one.limit?.rule, isParents ? chosen.slice(0, key?.length) : chosen], [key, key], note);
        if (one.outcome === "limited") assertEquals(one.why.includes("parent"), isParents, note);
      }
    }
  }
  assertEquals([...outcomes.keys()].sort(), ["limited", "none", "replaced", "unlimited"]);
  assertNotEquals(parents, 0);
});

Deno.test("descriptors as people write them", () => {
  const texts: readonly (readonly [text: string, read: ReturnType<typeof parseDescriptorText>])[] = [
    ["a=1,b=", [{ key: "a", value: "1" }, { key: "b", value: "" }]],
    ["=x", [{ key: "", value: "x" }]],
    ["a", '"a" has no equals sign: expected key=value'],
    ["a=1,", '"" has no equals sign: expected key=value'],
    ["path=/a?x=1,b==", [{ key: "path", value: "/a?x=1" }, { key: "b", value: "=" }]],
  ];
  for (const [text, read] of texts) assertEquals(parseDescriptorText(text), read, text);
});

Deno.test("moments as text: whole seconds, and at most the year 9999", () => {
  assertEquals([0, 1_700_000_000, 2 ** 60].map(instantText), [
    "1970-01-01T00:00:00Z",
    "2023-11-14T22:13:20Z",
    "9999-12-31T23:59:59Z",
  ]);
});

Deno.test("explain: the amounts of other algorithms", () => {
  const rules = rulesOf({
    "shop.yaml": `domain: shop
descriptors:
- key: sliding
  rate_limit: { unit: minute, unit_multiplier: 2, requests_per_unit: 9, algorithm: sliding_window }
- key: bucket
  rate_limit: { unit: second, requests_per_unit: 6, algorithm: token_bucket, burst: 30 }
- key: flight
  rate_limit: { algorithm: concurrency, max_in_flight: 9, lease: 30s }
- key: named
  identifies: true
  rate_limit: { algorithm: concurrency, max_in_flight: 9, lease: 30s }
- key: bill
  rate_limit: { unit: month, requests_per_unit: 9, calendar: true, timezone: Europe/Paris }
`,
  });
  const amounts = ["sliding=a", "bucket=a", "flight=a", "named=a", "bill=a"].map((text) => {
    const request = { domain: "shop", hitsAddend: 1, descriptors: [descriptor(text)] };
    const [{ limit, cacheKey, windowEnds } = {}] = explain(rules, request, CONTEXT).explanation.descriptors;
    return { limit, cacheKey, windowEnds };
  });
  const flags = { override: false, unlimited: false, shadowMode: false, quotaMode: false, replaces: [] };
  const sliding = { requestsPerUnit: 9, unit: "MINUTE", windowSeconds: 120, algorithm: "sliding_window" };
  const bucket = {
    requestsPerUnit: 6,
    unit: "SECOND",
    windowSeconds: 1,
    algorithm: "token_bucket",
    burst: 30,
  };
  const flight = { algorithm: "concurrency", maxInFlight: 9, leaseSeconds: 30 };
  const month = { requestsPerUnit: 9, unit: "MONTH", windowSeconds: 2_592_000, timezone: "Europe/Paris" };
  const bill = { limit: { ...flags, rule: "shop.bill", ...month }, cacheKey: "shop_bill_a_1698793200" };
  const expected = [
    { limit: { ...flags, rule: "shop.sliding", ...sliding }, cacheKey: "shop_sliding_a_sliding120" },
    { limit: { ...flags, rule: "shop.bucket", ...bucket }, cacheKey: "shop_bucket_a_bucket1" },
    { limit: { ...flags, rule: "shop.flight", ...flight }, cacheKey: "shop_flight_a_lease30" },
    {
      limit: { ...flags, rule: "shop.named", ...flight, identifiedBy: "named" },
      cacheKey: "shop_named_leases30",
    },
  ];
  assertEquals<unknown>(amounts, [
    ...expected.map((one) => ({ ...one, windowEnds: undefined })),
    { ...bill, windowEnds: "2023-11-30T23:00:00Z" },
  ]);
});
