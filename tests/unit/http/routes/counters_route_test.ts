import { Administrators } from "../../../../src/http/routes/administrators.ts";
import { administratorWith, NO_ADMINISTRATORS } from "../../../harness/administrators.ts";
import { assertEquals } from "#assert";
import {
  type CounterRouteOptions,
  counterRoutes,
  type Counters,
} from "../../../../src/http/routes/counters_route.ts";
import { createRouter } from "../../../../src/http/server/router.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../../../../src/ratelimit/errors.ts";
import type { CounterState } from "../../../../src/ratelimit/forecast/live_counters.ts";
import type { RateLimitRequest } from "../../../../src/ratelimit/request.ts";
import { HandledHttp } from "../../../harness/http_fixture.ts";

const TOKEN = "the-administration-token-of-this-test";
const STATE: CounterState = {
  limited: true,
  rule: "shop.user",
  cacheKey: "shop_user_secret-value_1699999980",
  limit: 2,
  unit: "MINUTE",
  windowSeconds: 60,
  used: 3,
  remaining: 0,
  resetsAt: "2023-11-14T22:14:00Z",
};
const UNLIMITED: CounterState = { limited: false, reason: "no_rule" };

/** Keeps what it is asked, and answers or throws what it is given. */
class CountersDouble implements Counters {
  readonly asked: unknown[] = [];
  readonly #error: Error | undefined;

  constructor(error?: Error) {
    this.#error = error;
  }

  peek(request: RateLimitRequest): Promise<CounterState[]> {
    return this.#answer("peek", request);
  }
  reset(request: RateLimitRequest): Promise<CounterState[]> {
    return this.#answer("reset", request);
  }

  #answer(work: string, request: RateLimitRequest): Promise<CounterState[]> {
    this.asked.push([work, request]);
    return this.#error === undefined ? Promise.resolve([STATE, UNLIMITED]) : Promise.reject(this.#error);
  }
}

function serve(counters: Counters, options: Partial<CounterRouteOptions> = {}): HandledHttp {
  return new HandledHttp(({ log, clock }) => {
    const routes = counterRoutes({
      counters,
      quotas: { peek: (domain, bucket) => Promise.resolve({ domain, bucket, clientCount: 0 }) },
      administrators: administratorWith(TOKEN),
      clock,
      logger: log,
      ...options,
    });
    return createRouter(routes, { logger: log, clock, newRequestId: () => "made" });
  });
}

const HEADERS = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const BODY = JSON.stringify({
  domain: "shop",
  descriptors: [{ entries: [{ key: "user", value: "secret-value" }] }],
});
const REQUEST: RateLimitRequest = {
  domain: "shop",
  descriptors: [{ entries: [{ key: "user", value: "secret-value" }] }],
  hitsAddend: 0,
};

Deno.test("peek answers the counter of each descriptor", async () => {
  const counters = new CountersDouble();
  const served = serve(counters);
  const response = await served.fetch("/api/v1/counters/peek", {
    method: "POST",
    headers: HEADERS,
    body: BODY,
  });
  assertEquals([response.status, response.headers.get("content-type"), await response.json()], [
    200,
    "application/json",
    { descriptors: [{ descriptor: "user=secret-value", ...STATE }, { descriptor: "", ...UNLIMITED }] },
  ]);
  assertEquals([counters.asked, served.log.lines], [[["peek", REQUEST]], []]);
});

Deno.test("peek answers the quota of a bucket, or why no client may report it", async () => {
  const pair = { key: "user", value: "ann" };
  const asked: readonly (readonly [object, number, unknown])[] = [
    [{ domain: "shop", bucket: [pair] }, 200, { domain: "shop", bucket: [pair], clientCount: 0 }],
    [{ bucket: [pair] }, 422, 'Cannot read "domain": must not be empty'],
    [{ ...REQUEST, bucket: [pair] }, 422, 'Cannot read "bucket": must not be given with descriptors'],
    [{ domain: "shop", bucket: [] }, 422, 'Cannot read "bucket": expected pairs with keys'],
    [{ domain: "shop", bucket: [{ value: "ann" }] }, 422, 'Cannot read "bucket": expected pairs with keys'],
    [
      { domain: "shop", bucket: Array.from({ length: 9 }, () => pair) },
      422,
      'Cannot read "bucket": expected at most 8 pairs',
    ],
  ];
  for (const [body, status, expected] of asked) {
    const counters = new CountersDouble();
    const call = { method: "POST", headers: HEADERS, body: JSON.stringify(body) };
    const response = await serve(counters).fetch("/api/v1/counters/peek", call);
    const answer = await response.json();
    assertEquals([response.status, response.ok ? answer : answer.detail], [status, expected]);
    assertEquals(counters.asked, []);
  }
});

Deno.test("counters: bytes that are not UTF-8 are those of a value, as in a call", async () => {
  const counters = new CountersDouble();
  const [before = "", after = ""] = BODY.split("secret-value");
  const body = new Blob([before, Uint8Array.of(0xe9), after]);
  for (const work of ["peek", "reset"]) {
    const path = `/api/v1/counters/${work}`;
    const response = await serve(counters).fetch(path, { method: "POST", headers: HEADERS, body });
    assertEquals([response.status, (await response.json()).descriptors.length], [200, 2]);
  }
  const asked = JSON.stringify(counters.asked);
  assertEquals(asked.match(/\\udce9/g)?.length, 2, asked);
});

Deno.test("reset tells what was used and who still denies; its log line holds nothing of the caller", async () => {
  const counters = new CountersDouble();
  const served = serve(counters);
  const response = await served.fetch("/api/v1/counters/reset", {
    method: "POST",
    headers: HEADERS,
    body: BODY,
  });
  assertEquals([response.status, await response.json()], [200, {
    descriptors: [
      { descriptor: "user=secret-value", ...STATE, used: 0, remaining: 2, usedBefore: 3 },
      { descriptor: "", ...UNLIMITED },
    ],
    otherInstances:
      "The local cache of every other instance still denies the keys that it knows to be over " +
      "their limit, until the window ends",
  }]);
  assertEquals(counters.asked, [["reset", REQUEST]]);
  assertEquals(served.log.lines, [{
    level: "info",
    message: "Counters reset",
    fields: { counters: 1, rules: "shop.user", requestId: "made", administrator: "admin" },
  }]);
});

Deno.test("the role read may peek, and not reset", async () => {
  const counters = new CountersDouble();
  const administrators = new Administrators([{ name: "ci", role: "read", token: TOKEN }]);
  const served = serve(counters, { administrators });
  const call = { method: "POST", headers: HEADERS, body: BODY };
  const peek = await served.fetch("/api/v1/counters/peek", call);
  const reset = await served.fetch("/api/v1/counters/reset", call);
  await peek.body?.cancel();
  assertEquals([peek.status, reset.status, (await reset.json()).code], [200, 403, "role_not_allowed"]);
  assertEquals(counters.asked, [["peek", REQUEST]]);
});

interface Row {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly error?: Error;
  readonly options?: Partial<CounterRouteOptions>;
}

const TEXT = { ...HEADERS, "content-type": "text/plain" };
const EMPTY_DOMAIN = new InvalidRequestError("the domain is empty", { field: "domain" });
const LARGE = "x".repeat(1_048_577);

// In the order in which it is looked at: each row has everything wrong that the rows below it have.
const REFUSED: readonly (readonly [name: string, row: Row, status: number, code: string, field?: string])[] =
  [
    ["no administration", { headers: {}, options: { administrators: NO_ADMINISTRATORS } }, 404, "not_found"],
    ["no token", { headers: {} }, 401, "unauthorized"],
    ["another token", { headers: { authorization: "Bearer of-another" } }, 401, "unauthorized"],
    ["a body that is too large", { method: "PUT", headers: TEXT, body: LARGE }, 413, "too_large", "body"],
    ["another type", { method: "PUT", headers: TEXT }, 415, "unsupported_media_type", "Content-Type"],
    ["another method", { method: "PUT" }, 405, "method_not_allowed"],
    ["no JSON", {}, 400, "malformed_json", "body"],
    ["no body", { body: "" }, 400, "malformed_json", "body"],
    ["a wrong field", { body: '{"domain":1}' }, 422, "invalid_field", "domain"],
    ["a request without an answer", { body: BODY, error: EMPTY_DOMAIN }, 422, "invalid_field", "domain"],
    ["no rules yet", { body: BODY, error: new NoConfigurationError() }, 503, "no_configuration"],
    [
      "a cache that is unavailable",
      { body: BODY, error: new CacheError("kv", "unavailable") },
      503,
      "cache_unavailable",
    ],
  ];

for (
  const [name, { method = "POST", headers = HEADERS, body = "no JSON", error, options }, ...answer] of REFUSED
) {
  for (const work of ["peek", "reset"]) {
    Deno.test(`counters: ${name} is ${answer[0]} for ${work}`, async () => {
      const counters = new CountersDouble(error);
      const served = serve(counters, options);
      const response = await served.fetch(`/api/v1/counters/${work}`, { method, headers, body });
      const { status, code, field, requestId } = await response.json();
      assertEquals(response.headers.get("content-type"), "application/problem+json");
      const [expected, ...facts] = answer;
      assertEquals([response.status, status, requestId], [expected, expected, "made"]);
      assertEquals([code, field], [facts[0], facts[1]]);
      assertEquals(counters.asked.length, error === undefined ? 0 : 1);
      assertEquals(served.log.lines.map(({ level, message }) => [level, message]), [
        ["warning", "HTTP request refused"],
      ]);
    });
  }
}

Deno.test("counters: GET without a body requires POST", async () => {
  const served = serve(new CountersDouble());
  const response = await served.fetch("/api/v1/counters/peek", { headers: HEADERS });
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("allow")], [405, "POST"]);
});

Deno.test("counters: an unexpected error is 500 and is logged", async () => {
  const served = serve(new CountersDouble(new Error("a fault")));
  const init = { method: "POST", headers: HEADERS, body: BODY };
  const response = await served.fetch("/api/v1/counters/reset", init);
  await response.body?.cancel();
  const messages = served.log.lines.map(({ message }) => message);
  assertEquals([response.status, messages], [500, ["HTTP request failed"]]);
});
