import { assertEquals } from "#assert";
import { ranOver } from "../../harness/administration_fixture.ts";

const RULES = `domain: shop
descriptors:
- key: user
  rate_limit: { unit: minute, requests_per_unit: 10, name: users }
- key: user
  value: ad*
  descriptors:
  - key: path
    rate_limit: { unit: day, unit_multiplier: 2, requests_per_unit: 30, replaces: [{ name: users }] }
    shadow_mode: true
    quota_mode: true
    events: [near_limit, over_limit]
    events_redact: hash
- key: free
  rate_limit: { unlimited: true }
`;

const SHOP = { "shop.yaml": RULES };
const ASKED = "explain --config DIR --domain shop";

const TEXT = `domain shop at 2026-01-31T12:00:00Z

descriptor 0: user=adam,path=/a
  level 1: user=adam
    > user_ad*  first matching pattern
    - user      it matches any value, but a rule with a matching value takes precedence
    - other keys of this level: free
  level 2: path=/a
    > path  it matches any value, and no rule with a value matches
  limit        30 per DAY (a window of 172800 s)
  rule         shop.user_ad*.path
  shadow mode  it is counted, and answered as OK
  quota mode   the call is over its limit only when all its quotas are
  replaces     users
  events       over_limit, near_limit (values: hash)
  cache key    v1:shop_user_adam_path_/a_1769817600
  window ends  2026-02-02T00:00:00Z

descriptor 1: user=bob
  level 1: user=bob
    > user      it matches any value, and no rule with a value matches
    - user_ad*  its pattern does not match
    - other keys of this level: free
  no limit     shop.user does not apply: shop.user_ad*.path of descriptor 0 replaces "users"

descriptor 2: free
  level 1: free
    > free  it matches any value, and no rule with a value matches
    - other keys of this level: user
  unlimited    shop.free: nothing is counted

descriptor 3: none=\\u001b[1m
  level 1: none=\\u001b[1m
    - other keys of this level: user, free
  no limit     no rule of level 1 has the key "none"
`;

Deno.test("weir explain: text for people, with what others wrote as plain text", async () => {
  const lists = ["user=adam,path=/a", "user=bob", "free=", "none=\u001b[1m"];
  const line = [ASKED, ...lists.map((list) => `--descriptors ${list}`)].join(" ");
  const result = { code: 0, stdout: TEXT, stderr: "" };
  const store = { WEBHOOK_STORE: "weir.db" };
  assertEquals(await ranOver(SHOP, `${line} --prefix v1:`, { environment: store }), result);
  const environment = { CACHE_KEY_PREFIX: "v1:", ...store };
  assertEquals(await ranOver(SHOP, line, { environment }), result);
});

Deno.test("weir explain --json: the same for machines", async () => {
  const { code, stdout } = await ranOver(SHOP, `${ASKED} --descriptors user=bob -json`);
  const level = {
    entry: { key: "user", value: "bob" },
    rules: [
      {
        rule: "user",
        by: "key",
        matches: true,
        chosen: true,
        why: "it matches any value, and no rule with a value matches",
      },
      { rule: "user_ad*", by: "pattern", matches: false, chosen: false, why: "its pattern does not match" },
    ],
    furtherRules: 0,
    otherKeys: ["free"],
    furtherKeys: 0,
  };
  assertEquals([code, JSON.parse(stdout)], [0, {
    domain: "shop",
    domainKnown: true,
    at: "2026-01-31T12:00:00Z",
    descriptors: [{
      entries: [{ key: "user", value: "bob" }],
      levels: [level],
      outcome: "limited",
      why: "its rule has a limit",
      limit: {
        rule: "shop.user",
        override: false,
        unlimited: false,
        name: "users",
        requestsPerUnit: 10,
        unit: "MINUTE",
        windowSeconds: 60,
        shadowMode: false,
        quotaMode: false,
        replaces: [],
      },
      cacheKey: "shop_user_bob_1769860800",
      windowEnds: "2026-01-31T12:01:00Z",
    }],
  }]);
});

const ONE = `${ASKED} --descriptors k=v`;
const TWICE = { "a.yaml": "domain: shop\ndescriptors: []\n", "b.yaml": "domain: shop\ndescriptors: []\n" };

Deno.test("weir explain: rules with a mistake, and a request that no call may make, explain nothing", async () => {
  const mistake = { "a.yaml": "domain: shop\ndescriptors:\n- key: k\n- key: k\n" };
  const long = `${ASKED} --descriptors ${Array(65).fill("k=v").join(",")}`;
  const seen = [await ranOver(mistake, ONE), await ranOver(TWICE, ONE), await ranOver({}, long)];
  assertEquals(seen.map(({ code, stdout, stderr }) => [code, stdout, stderr.split("\n")[0]]), [
    [
      1,
      "",
      "DIR/a.yaml:4:3: descriptors[1]: duplicate descriptor composite key 'shop.k'; the first one is at DIR/a.yaml:3:3",
    ],
    [
      1,
      "",
      "DIR/b.yaml:1:9: domain: duplicate domain 'shop' in config file; it is already in DIR/a.yaml:1:9, " +
      "and MERGE_DOMAIN_CONFIG=true would allow that",
    ],
    [2, "", "Invalid request: descriptor 0 must not have more than 64 entries, but has 65"],
  ]);
});

Deno.test("weir explain --merge: several files may define a domain", async () => {
  const { code, stderr } = await ranOver(TWICE, `${ONE} --merge`);
  assertEquals([code, stderr], [0, ""]);
});

Deno.test("weir explain: a warning is shown next to the explanation", async () => {
  const dubious =
    "domain: shop\ndescriptors:\n- key: k\n  rate_limit: {unlimited: true, shadow_mode: true}\n";
  const { code, stdout, stderr } = await ranOver({ "a.yaml": dubious }, ONE);
  assertEquals([code, stdout.includes("unlimited    shop.k"), stderr], [
    0,
    true,
    "DIR/a.yaml:4:33: descriptors[0].rate_limit.shadow_mode: warning: has no effect here; it belongs in a descriptor\n",
  ]);
});

Deno.test("weir explain: limits with other algorithms", async () => {
  const files = {
    "shop.yaml": `domain: shop
descriptors:
- key: sliding
  rate_limit: { unit: minute, requests_per_unit: 10, algorithm: sliding_window }
- key: bucket
  rate_limit: { unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30 }
- key: flight
  rate_limit: { algorithm: concurrency, max_in_flight: 20, lease: 60s, name: slow }
`,
  };
  const asked = "--descriptors sliding=a --descriptors bucket=a --descriptors flight=a";
  const { stdout } = await ranOver(files, `${ASKED} ${asked}`);
  assertEquals(stdout.split("\n").filter((text) => /^ {2}(limit|cache key|window ends) /.test(text)), [
    "  limit        10 per MINUTE (a sliding window of 60 s)",
    "  cache key    shop_sliding_a_sliding60",
    "  limit        10 per SECOND (a token bucket of 30, 1 s)",
    "  cache key    shop_bucket_a_bucket1",
    '  limit        20 in flight (a lease of 60 s), named "slow"',
    "  cache key    shop_flight_a_lease60",
  ]);
});

Deno.test("weir explain: windows of a calendar, by a rule and by the setting", async () => {
  const files = {
    "shop.yaml": `domain: shop
descriptors:
- key: bill
  rate_limit: { unit: month, requests_per_unit: 10, calendar: true, timezone: Europe/Paris }
- key: plain
  rate_limit: { unit: month, requests_per_unit: 10 }
`,
  };
  const line = `${ASKED} --descriptors bill=a --descriptors plain=a`;
  const shown = async (environment: Record<string, string>) => {
    const { stdout } = await ranOver(files, line, { environment });
    return stdout.split("\n").filter((text) => /^ {2}(limit|cache key|window ends) /.test(text));
  };
  const bill = [
    "  limit        10 per MONTH (a calendar window of 2678400 s in Europe/Paris)",
    "  cache key    shop_bill_a_1767222000",
    "  window ends  2026-01-31T23:00:00Z",
  ];
  assertEquals(await shown({}), [
    ...bill,
    "  limit        10 per MONTH (a window of 2592000 s)",
    "  cache key    shop_plain_a_1767744000",
    "  window ends  2026-02-06T00:00:00Z",
  ]);
  assertEquals(await shown({ USE_CALENDAR_MONTH_RATE_LIMIT: "true" }), [
    ...bill,
    "  limit        10 per MONTH (a calendar window of 2678400 s in UTC)",
    "  cache key    shop_plain_a_1767225600",
    "  window ends  2026-02-01T00:00:00Z",
  ]);
});

const QUOTAS = {
  "shop.yaml": `domain: shop
descriptors:
- key: path
  descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 30 }
- key: free
  rate_limit: { unlimited: true }
- key: none
  rate_limit: { unit: second, requests_per_unit: 0 }
- key: shadow
  shadow_mode: true
  rate_limit: { unit: second, requests_per_unit: 10 }
- key: bucket
  rate_limit: { unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 25 }
- key: flight
  on_cache_failure: deny
  rate_limit: { algorithm: concurrency, max_in_flight: 5, lease: 1m }
`,
};
const BUCKETS = ["user=bob,path=/a", "free=", "none=x", "shadow=x", "bucket=x", "other=\u001b[1m"];

const BUCKETS_TEXT = `domain shop

bucket 0: path=/a,user=bob
  rule   shop.path.user
  place  DIR/shop.yaml:5
  quota  0.5 per second, at most 30 together: its rule has a limit

bucket 1: free
  rule   shop.free
  place  DIR/shop.yaml:7
  quota  allows all requests: its rule is unlimited

bucket 2: none=x
  rule   shop.none
  place  DIR/shop.yaml:9
  quota  denies all requests: its rule has a limit of 0

bucket 3: shadow=x
  rule   shop.shadow
  place  DIR/shop.yaml:11
  quota  allows all requests, and counts those above 10 per second: its rule is in shadow mode

bucket 4: bucket=x
  rule   shop.bucket
  place  DIR/shop.yaml:14
  quota  10 per second, at most 25 together: its rule has a limit

bucket 5: other=\\u001b[1m
  quota  allows all requests: no rule matches all pairs
`;

Deno.test("weir explain --bucket: the rule, its place and the quota, whatever the order of the pairs", async () => {
  const line = [ASKED, ...BUCKETS.map((bucket) => `--bucket ${bucket}`)].join(" ");
  assertEquals(await ranOver(QUOTAS, line), { code: 0, stdout: BUCKETS_TEXT, stderr: "" });
  const { stdout } = await ranOver(QUOTAS, "explain --config DIR --domain unknown --bucket a=b");
  assertEquals(
    stdout,
    "domain unknown\n\nbucket 0: a=b\n  quota  allows all requests: unknown domain\n",
  );
});

Deno.test("weir explain --bucket: a limit in flight is an error with its place", async () => {
  const { code, stdout, stderr } = await ranOver(QUOTAS, `${ASKED} --bucket flight=x --json`);
  const why = "a rule with the algorithm concurrency cannot be a quota; its on_cache_failure decides";
  const rule = { name: "shop.flight", file: "DIR/shop.yaml", line: 16, onCacheFailure: "deny" };
  const pairs = [{ key: "flight", value: "x" }];
  const expected = { domain: "shop", buckets: [{ pairs, rule, quota: { kind: "impossible" }, why }] };
  assertEquals([code, JSON.parse(stdout), stderr], [1, expected, `DIR/shop.yaml:16: shop.flight: ${why}\n`]);
});

Deno.test("weir explain --bucket: the environment can put all rules in shadow mode, or have no quotas", async () => {
  const line = `${ASKED} --bucket path=/a,user=bob --bucket flight=x`;
  const { code, stdout } = await ranOver(QUOTAS, line, { environment: { SHADOW_MODE: "true" } });
  assertEquals([code, stdout.split("\n").filter((text) => text.startsWith("  quota"))], [0, [
    "  quota  allows all requests, and counts those above 0.5 per second: SHADOW_MODE is set",
    "  quota  allows all requests: SHADOW_MODE is set",
  ]]);
  const refused = await ranOver({ "shop.yaml": "domain: shop\ndescriptors: []" }, `${ASKED} --bucket a=b`, {
    environment: { BACKEND_TYPE: "memcache" },
  });
  assertEquals([refused.code, refused.stderr], [
    0,
    "warning: quotas require BACKEND_TYPE=kv or memory: memcached cannot divide a limit among instances\n",
  ]);
});
