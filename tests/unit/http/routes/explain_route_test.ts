import { administratorWith, NO_ADMINISTRATORS } from "../../../harness/administrators.ts";
import { assertEquals } from "#assert";
import { MemoryCache } from "../../../../src/cache/memory_cache.ts";
import { explainRoute, type ExplainRouteOptions } from "../../../../src/http/routes/explain_route.ts";
import type { CounterCache } from "../../../../src/ratelimit/decision/counter_cache.ts";
import { FailingCache } from "../../../harness/failing_cache.ts";
import { CacheError } from "../../../../src/ratelimit/errors.ts";
import { LiveCounters } from "../../../../src/ratelimit/forecast/live_counters.ts";
import type { Rules } from "../../../../src/ratelimit/rules/rules.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { PLAIN_POLICY, rulesOf } from "../../../harness/service_fixture.ts";
import { debugHandler, HandledHttp } from "../../../harness/http_fixture.ts";
import { takeCounts } from "../../../harness/take.ts";

const ADMIN = "the-administration-token-of-this-test";
const ADMINS = administratorWith(ADMIN);
const DEBUG = "the-debug-token-of-this-test";
const RULES = rulesOf({
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: minute, requests_per_unit: 2 }
`,
});
const KEY = "shop_user_ann_1699999980";
const ASKED = "/explain?domain=shop&descriptors=user=ann&descriptors=none=x";

/** The debug port of a service that counted three hits of `user=ann`; closed at the end of its block. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock(1_700_000_000_000);
  readonly cache = new MemoryCache({ maxKeys: 10, clock: this.clock });
  readonly served: HandledHttp;

  constructor(
    tokens: Partial<Pick<ExplainRouteOptions, "debugToken" | "administrators">>,
    { rules = () => RULES, cache = this.cache }: {
      readonly rules?: () => Rules | undefined;
      readonly cache?: CounterCache;
    } = {},
  ) {
    const { clock } = this;
    const hit = { key: KEY, addend: 3, windowEnd: 1_700_000_040, expiresInSeconds: 60, perSecond: false };
    takeCounts(this.cache, [hit]);
    const counted = { rules, cache, clock, policy: PLAIN_POLICY, fallback: undefined };
    const explainer = new LiveCounters(counted);
    const given = { debugToken: undefined, administrators: NO_ADMINISTRATORS, ...tokens };
    const routes = [explainRoute({ explainer, ...given })];
    this.served = new HandledHttp(debugHandler({ token: given.debugToken, routes }));
  }

  async get(path: string, token?: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await this.served.fetch(path, { headers });
    return { status: response.status, body: await response.json() };
  }

  /** True if the answer shows counts, what it says of them, and the count of the first descriptor. */
  async counts(token?: string): Promise<unknown> {
    const { status, body } = await this.get(ASKED, token);
    const { counts, descriptors, reason } = body;
    if (status !== 200 || !Array.isArray(descriptors)) return [status, reason];
    return [status, counts, descriptors.map(({ used, remaining }) => [used, remaining])];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cache.close();
  }
}

const HIDDEN = [200, "not shown: they require an administration token", [[undefined, undefined], [
  undefined,
  undefined,
]]];
const SHOWN = [200, "shown", [[3, 0], [undefined, undefined]]];
const WANTED = [401, "a bearer token is required"];
const WRONG = [401, "the bearer token is wrong"];

// For each way to set the two tokens, the answers without a token, with that of the debug port, with that of the
// administration and with another one.
const RIGHTS: readonly (readonly [
  name: string,
  tokens: Partial<Pick<ExplainRouteOptions, "debugToken" | "administrators">>,
  answers: readonly unknown[],
])[] = [
  ["no token is set", {}, [HIDDEN, WRONG, WRONG, WRONG]],
  ["only DEBUG_TOKEN is set", { debugToken: DEBUG }, [WANTED, HIDDEN, WRONG, WRONG]],
  ["only ADMIN_TOKEN is set", { administrators: ADMINS }, [HIDDEN, WRONG, SHOWN, WRONG]],
  ["both are set", { debugToken: DEBUG, administrators: ADMINS }, [WANTED, HIDDEN, SHOWN, WRONG]],
];

for (const [name, tokens, answers] of RIGHTS) {
  Deno.test(`/explain: who sees what where ${name}`, async () => {
    await using bed = new Bed(tokens);
    const seen = [];
    for (const token of [undefined, DEBUG, ADMIN, "another"]) seen.push(await bed.counts(token));
    assertEquals(seen, answers);
  });
}

Deno.test("/explain: the walk, the counter and nothing consumed", async () => {
  await using bed = new Bed({ administrators: ADMINS });
  const [first, second] = [await bed.get(ASKED, ADMIN), await bed.get(ASKED, ADMIN)];
  assertEquals(first, second);
  const chosen = { rule: "user", by: "key", matches: true, chosen: true };
  assertEquals(first, {
    status: 200,
    body: {
      domain: "shop",
      domainKnown: true,
      at: "2023-11-14T22:13:20Z",
      counts: "shown",
      descriptors: [
        {
          entries: [{ key: "user", value: "ann" }],
          levels: [{
            entry: { key: "user", value: "ann" },
            rules: [{ ...chosen, why: "it matches any value, and no rule with a value matches" }],
            furtherRules: 0,
            otherKeys: [],
            furtherKeys: 0,
          }],
          outcome: "limited",
          why: "its rule has a limit",
          limit: {
            rule: "shop.user",
            override: false,
            unlimited: false,
            requestsPerUnit: 2,
            unit: "MINUTE",
            windowSeconds: 60,
            shadowMode: false,
            quotaMode: false,
            replaces: [],
          },
          cacheKey: KEY,
          windowEnds: "2023-11-14T22:14:00Z",
          used: 3,
          remaining: 0,
        },
        {
          entries: [{ key: "none", value: "x" }],
          levels: [{
            entry: { key: "none", value: "x" },
            rules: [],
            furtherRules: 0,
            otherKeys: ["user"],
            furtherKeys: 0,
          }],
          outcome: "none",
          why: 'no rule of level 1 has the key "none"',
        },
      ],
    },
  });
});

Deno.test("/explain: bytes that are not UTF-8 are those that a request counts, and are shown escaped", async () => {
  await using bed = new Bed({});
  const seen = [];
  for (const value of ["caf%e9", "caf%C3%A9", "a+b%2Bc", "a=b", "%F0%9F%A6%95"]) {
    const { body } = await bed.get(`/explain?domain=shop&descriptors=user=${value}`);
    const [descriptor] = body["descriptors"] as { entries: { value: string }[]; cacheKey: string }[];
    seen.push([descriptor?.entries[0]?.value, descriptor?.cacheKey.replace(/[\da-f]{64}/, "HASH")]);
  }
  assertEquals(seen, [
    ["caf\\xe9", "shop_user_caf\\xe9~sha256_HASH_1699999980"],
    ["café", "shop_user_café_1699999980"],
    ["a b+c", "shop_user_a b+c_1699999980"],
    ["a=b", "shop_user_a=b_1699999980"],
    ["🦕", "shop_user_🦕_1699999980"],
  ]);
});

const WRONG_QUERIES: readonly (readonly [query: string, field: string, reason: string])[] = [
  ["", "domain", "must be given once, and not be empty"],
  ["?domain=&descriptors=a=b", "domain", "must be given once, and not be empty"],
  ["?domain=a&domain=b&descriptors=a=b", "domain", "must be given once, and not be empty"],
  ["?domain=a", "descriptors", "must be given, such as descriptors=key=value"],
  ["?domain=a&descriptors=b", "descriptors", '"b" has no equals sign: expected key=value'],
  ["?domain=a&descriptor=b=c", "descriptor", "only domain and descriptors are known"],
  [
    `?domain=a&descriptors=${Array(65).fill("k=v").join(",")}`,
    "descriptors[0].entries",
    "descriptor 0 must not have more than 64 entries, but has 65",
  ],
];

for (const [query, wantedField, wantedReason] of WRONG_QUERIES) {
  Deno.test(`/explain${query.slice(0, 60)}: 400 with what is expected`, async () => {
    await using bed = new Bed({});
    const { status, body: { field, reason } } = await bed.get(`/explain${query}`);
    assertEquals([status, field, reason], [400, wantedField, wantedReason]);
  });
}

Deno.test("/explain without rules is 503", async () => {
  await using bed = new Bed({}, { rules: () => undefined });
  const { status, body } = await bed.get(ASKED);
  assertEquals([status, body["reason"]], [503, "no rate limit configuration loaded"]);
});

Deno.test("/explain shows the walk also while the cache is unavailable", async () => {
  const away = new FailingCache([]);
  away.error = new CacheError("kv", "the cache is unavailable");
  await using bed = new Bed({ administrators: ADMINS }, { cache: away });
  const none = [undefined, undefined];
  assertEquals(await bed.counts(ADMIN), [200, "not shown: the cache is unavailable", [none, none]]);
});
