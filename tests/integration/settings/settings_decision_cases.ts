import type { ServeFixture } from "../../harness/serve_fixture.ts";
import { compare, type SettingCases, shopRequest } from "./settings_case.ts";

const HEADERS = { LIMIT_RESPONSE_HEADERS_ENABLED: "true" };
const RULE = "ratelimit.service.rate_limit.shop";

/** Tests of the settings of how decisions are made. */
export const DECISION_CASES: SettingCases = {
  NEAR_LIMIT_RATIO: {
    sees: "a hit counted as near the limit sooner",
    run: () =>
      compare({ NEAR_LIMIT_RATIO: "0.5" }, {
        async look(service) {
          const nearLimit = async () => (await service.stats())[`${RULE}.open.near_limit`] ?? 0;
          const before = await nearLimit();
          await service.ask({ ...shopRequest("open=near"), hitsAddend: 6 });
          return await nearLimit() - before;
        },
        unset: 0,
        set: 1,
      }),
  },
  SHADOW_MODE: {
    sees: "a call over its limit let through",
    run: () => compare({ SHADOW_MODE: "true" }, { look: statusOf("blocked=shadow"), unset: 429, set: 200 }),
  },
  QUOTA_MODE: {
    sees: "a call let through while one of its descriptors is under its limit",
    run: () =>
      compare({ QUOTA_MODE: "true" }, {
        look: statusOf("blocked=quota", "open=quota"),
        unset: 429,
        set: 200,
      }),
  },
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: {
    sees: "the counter beside one that is over left alone",
    run: () =>
      compare({ STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "true" }, {
        async look(service) {
          await service.ask(shopRequest("blocked=stop", "open=stop"));
          const { body } = await service.ask(shopRequest("open=stop"));
          return field(body, "statuses", 0, "limitRemaining");
        },
        unset: 8,
        set: 9,
      }),
  },
  RESPONSE_DYNAMIC_METADATA: {
    sees: "the question told in the answer",
    run: () =>
      compare({ RESPONSE_DYNAMIC_METADATA: "true" }, {
        look: async (service) =>
          field((await service.ask(shopRequest("open=metadata"))).body, "dynamicMetadata", "domain"),
        unset: undefined,
        set: "shop",
      }),
  },
  LIMIT_RESPONSE_HEADERS_ENABLED: {
    sees: "three headers in the answer",
    run: () =>
      compare(HEADERS, {
        look: headers,
        unset: undefined,
        set: [
          { key: "RateLimit-Limit", value: "10" },
          { key: "RateLimit-Remaining", value: "9" },
          { key: "RateLimit-Reset", value: "43200" },
        ],
      }),
  },
  LIMIT_LIMIT_HEADER: {
    sees: "another name of the first header",
    run: () =>
      compare({ LIMIT_LIMIT_HEADER: "x-most" }, {
        env: HEADERS,
        look: headerNames,
        unset: ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
        set: ["x-most", "RateLimit-Remaining", "RateLimit-Reset"],
      }),
  },
  LIMIT_REMAINING_HEADER: {
    sees: "another name of the second header",
    run: () =>
      compare({ LIMIT_REMAINING_HEADER: "x-left" }, {
        env: HEADERS,
        look: headerNames,
        unset: ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
        set: ["RateLimit-Limit", "x-left", "RateLimit-Reset"],
      }),
  },
  LIMIT_RESET_HEADER: {
    sees: "another name of the third header",
    run: () =>
      compare({ LIMIT_RESET_HEADER: "x-anew" }, {
        env: HEADERS,
        look: headerNames,
        unset: ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
        set: ["RateLimit-Limit", "RateLimit-Remaining", "x-anew"],
      }),
  },
  LIMIT_STANDARD_HEADERS_ENABLED: {
    sees: "the standard headers in the answer",
    run: () =>
      compare({ LIMIT_STANDARD_HEADERS_ENABLED: "true" }, {
        look: headers,
        unset: undefined,
        set: [
          { key: "RateLimit-Policy", value: '"default";q=10;w=86400' },
          { key: "RateLimit", value: '"default";r=9;t=43200' },
        ],
      }),
  },
  STATS_MAX_KEYS: {
    sees: "statistics of the keys of a domain beyond the bound gathered in one",
    run: () =>
      compare({ STATS_MAX_KEYS: "2" }, {
        async look(service) {
          await service.ask(shopRequest("each=a", "each=b", "each=c"));
          const stats = await service.stats();
          const other = stats[`${RULE}.other.total_hits`];
          return [stats[`${RULE}.each_c.total_hits`], other];
        },
        unset: [1, undefined],
        set: [undefined, 1],
      }),
  },
};

function statusOf(...descriptors: readonly string[]): (service: ServeFixture) => Promise<number> {
  return async (service) => (await service.ask(shopRequest(...descriptors))).status;
}

async function headers(service: ServeFixture): Promise<unknown> {
  return field((await service.ask(shopRequest("open=headers"))).body, "responseHeadersToAdd");
}

async function headerNames(service: ServeFixture): Promise<unknown> {
  const list = await headers(service);
  return Array.isArray(list) ? list.map((header) => field(header, "key")) : undefined;
}

/** What stands at a place in a JSON value. */
function field(value: unknown, ...path: readonly (string | number)[]): unknown {
  let at = value;
  for (const name of path) at = typeof at === "object" && at !== null ? Reflect.get(at, name) : undefined;
  return at;
}
