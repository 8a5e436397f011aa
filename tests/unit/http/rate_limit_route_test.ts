import { assertEquals } from "@std/assert";
import { rateLimitRoute } from "../../../src/http/rate_limit_route.ts";
import { createRouter } from "../../../src/http/router.ts";
import type { Caller } from "../../../src/ratelimit/counter_cache.ts";
import type { Decision } from "../../../src/ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../../../src/ratelimit/errors.ts";
import type { RateLimitRequest } from "../../../src/ratelimit/request.ts";
import { HandledHttp } from "../../harness/http_fixture.ts";

type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

const OK: Decision = {
  overallCode: "OK",
  statuses: [{ code: "OK", limitRemaining: 0 }],
  responseHeadersToAdd: [],
  dynamicMetadata: undefined,
};
const BODY = `{"domain":"d"}`;
const MIB = 1_048_576;

function serveJson(decide: Decide): HandledHttp {
  return new HandledHttp(({ log, clock }) =>
    createRouter([rateLimitRoute({ decide, clock })], { logger: log, clock, newRequestId: () => "made" })
  );
}

function post(served: HandledHttp, body: BodyInit): Promise<Response> {
  return served.fetch("/json", { method: "POST", body });
}

function chunked(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      const size = Math.min(left, 65_536);
      if (size > 0) controller.enqueue(new Uint8Array(size).fill(0x20));
      left -= size;
      if (left <= 0) controller.close();
    },
  });
}

const DECISIONS: readonly { name: string; decide: Decide; status: number }[] = [
  { name: "OK", decide: () => OK, status: 200 },
  { name: "OK, later", decide: () => Promise.resolve(OK), status: 200 },
  { name: "OVER_LIMIT", decide: () => ({ ...OK, overallCode: "OVER_LIMIT" }), status: 429 },
];

for (const { name, decide, status } of DECISIONS) {
  Deno.test(`a decision of ${name} is ${status}`, async () => {
    const served = serveJson(decide);
    const response = await post(served, BODY);
    const { overallCode } = await response.json() as { overallCode: string };
    assertEquals(
      [
        response.status,
        response.headers.get("content-type"),
        response.headers.get("x-request-id"),
        overallCode,
      ],
      [status, "application/json", "made", name.split(",")[0]],
    );
    assertEquals(served.log.lines, []);
  });
}

const LIMIT = { name: "", requestsPerUnit: 5, unit: "MINUTE" } as const;
const over = (secondsUntilReset?: number): Decision["statuses"][number] =>
  secondsUntilReset === undefined
    ? { code: "OVER_LIMIT", limitRemaining: 0 }
    : { code: "OVER_LIMIT", currentLimit: LIMIT, limitRemaining: 0, secondsUntilReset };

const HEADERS: readonly {
  name: string;
  decision: Partial<Decision>;
  headers: Record<string, string | null>;
}[] = [
  { name: "OK", decision: {}, headers: { "retry-after": null } },
  {
    name: "OK in shadow mode",
    decision: { statuses: [over(9)] },
    headers: { "retry-after": null },
  },
  {
    name: "over several limits",
    decision: {
      overallCode: "OVER_LIMIT",
      statuses: [over(9), over(40), {
        code: "OK",
        currentLimit: LIMIT,
        limitRemaining: 1,
        secondsUntilReset: 70,
      }],
    },
    headers: { "retry-after": "40" },
  },
  {
    name: "over a limit without a time",
    decision: { overallCode: "OVER_LIMIT", statuses: [over()] },
    headers: { "retry-after": "1" },
  },
  {
    name: "with headers to add",
    decision: {
      responseHeadersToAdd: [
        { key: "X-RateLimit-Limit", value: "5" },
        { key: "RateLimit", value: '"default";r=4;t=39' },
        { key: "Content-Type", value: "4" },
        { key: "Content-Length", value: "4" },
      ],
    },
    headers: {
      "x-ratelimit-limit": "5",
      "ratelimit": '"default";r=4;t=39',
      "content-type": "application/json",
      "content-length": null,
    },
  },
  {
    name: "with a name for Retry-After",
    decision: {
      overallCode: "OVER_LIMIT",
      statuses: [over(9)],
      responseHeadersToAdd: [{ key: "Retry-After", value: "39" }],
    },
    headers: { "retry-after": "39" },
  },
];

for (const { name, decision, headers } of HEADERS) {
  Deno.test(`the headers of a decision: ${name}`, async () => {
    const response = await post(serveJson(() => ({ ...OK, ...decision })), BODY);
    await response.body?.cancel();
    const got = Object.fromEntries(Object.keys(headers).map((key) => [key, response.headers.get(key)]));
    assertEquals(got, headers);
  });
}

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  413: "Content Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

interface Refused {
  readonly name: string;
  readonly body?: () => BodyInit;
  readonly fails?: Error;
  readonly status: number;
  readonly reason: string;
  readonly detail?: string;
  readonly field?: string;
}

const REFUSED: readonly Refused[] = [
  {
    name: "no JSON",
    body: () => "}",
    status: 400,
    reason: "not valid JSON at line 1 column 1",
    detail: `Cannot read "body": not valid JSON at line 1 column 1`,
    field: "body",
  },
  {
    name: "an empty body",
    body: () => "",
    status: 400,
    reason: "empty, expected a JSON object",
    detail: `Cannot read "body": empty, expected a JSON object`,
    field: "body",
  },
  {
    name: "bytes that are not UTF-8 outside of a string",
    body: () => Uint8Array.of(0x7b, 0xff, 0x7d),
    status: 400,
    reason: "not valid JSON at line 1 column 2",
    detail: `Cannot read "body": not valid JSON at line 1 column 2`,
    field: "body",
  },
  {
    name: "a wrong field",
    body: () => `{"descriptors":[{"hitsAddend":-1}]}`,
    status: 400,
    reason: "must be a whole number of 0 or more",
    detail: `Cannot read "descriptors[0].hitsAddend": must be a whole number of 0 or more`,
    field: "descriptors[0].hitsAddend",
  },
  {
    name: "what the core refuses",
    fails: new InvalidRequestError("rate limit domain must not be empty"),
    status: 400,
    reason: "rate limit domain must not be empty",
  },
  {
    name: "what the core refuses for one field",
    fails: new InvalidRequestError("why", { field: "descriptors[3].hitsAddend" }),
    status: 400,
    reason: "why",
    field: "descriptors[3].hitsAddend",
  },
  {
    name: "a call before the first rules",
    fails: new NoConfigurationError(),
    status: 503,
    reason: "no rate limit configuration loaded",
  },
  {
    name: "a call while the cache is down",
    fails: new CacheError("kv", "cannot reach the cache"),
    status: 503,
    reason: "cannot reach the cache",
  },
  {
    name: "what the cache can never hold",
    fails: new InvalidRequestError("the key is too long", { backend: "mc" }),
    status: 400,
    reason: "the key is too long",
  },
  { name: "a fault of the program", fails: new TypeError("inside"), status: 500, reason: "internal error" },
  {
    name: "a body of 1 MiB and a byte with its length",
    body: () => " ".repeat(MIB + 1),
    status: 413,
    reason: "larger than 1048576 bytes",
    detail: `Cannot read "body": larger than 1048576 bytes`,
    field: "body",
  },
  {
    name: "a chunked body of 1 MiB and a byte",
    body: () => chunked(MIB + 1),
    status: 413,
    reason: "larger than 1048576 bytes",
    detail: `Cannot read "body": larger than 1048576 bytes`,
    field: "body",
  },
];

for (const { name, body, fails, status, reason, detail, field } of REFUSED) {
  for (const later of fails === undefined ? [false] : [false, true]) {
    Deno.test(`${name} is ${status}${later ? ", later" : ""}`, async () => {
      const served = serveJson(() => {
        if (fails === undefined) return OK;
        if (later) return Promise.reject(fails);
        throw fails;
      });
      const response = await post(served, body?.() ?? BODY);
      assertEquals(
        {
          status: response.status,
          type: response.headers.get("content-type"),
          id: response.headers.get("x-request-id"),
          body: await response.json() as unknown,
          logged: served.log.lines.map(({ level, fields }) => [level, fields.requestId]),
        },
        {
          status,
          type: "application/problem+json",
          id: "made",
          body: {
            type: "about:blank",
            title: TITLES[status],
            status,
            detail: detail ?? reason,
            ...(field === undefined ? {} : { field }),
            reason,
            requestId: "made",
          },
          logged: [[status === 500 ? "error" : "warning", "made"]],
        },
      );
      assertEquals(served.clock.waiting, 0);
    });
  }
}

Deno.test("a body of exactly 1 MiB is read", async () => {
  const served = serveJson(() => OK);
  const response = await post(served, BODY.padEnd(MIB));
  await response.body?.cancel();
  assertEquals(response.status, 200);
});

Deno.test("a body in many pieces is put together, also in the middle of a character", async () => {
  const seen: RateLimitRequest[] = [];
  const served = serveJson((request) => {
    seen.push(request);
    return OK;
  });
  const bytes = new TextEncoder().encode(`{"domain":"\u00e4\u{1f600}"}`);
  const pieces = ReadableStream.from(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  const response = await post(served, pieces);
  await response.body?.cancel();
  assertEquals(seen, [{ domain: "\u00e4\u{1f600}", descriptors: [], hitsAddend: 0 }]);
});

Deno.test("a caller that waits is not cancelled", async () => {
  const cancelled: boolean[] = [];
  const served = serveJson((_, caller) => {
    cancelled.push(caller.cancelled);
    return OK;
  });
  const response = await post(served, BODY);
  await response.body?.cancel();
  assertEquals([response.status, cancelled], [200, [false]]);
});

for (const method of ["GET", "HEAD", "PUT", "DELETE"]) {
  Deno.test(`${method} /json is 405 with what is allowed`, async () => {
    const served = serveJson(() => OK);
    const response = await served.fetch("/json", { method });
    await response.body?.cancel();
    assertEquals([response.status, response.headers.get("allow")], [405, "POST"]);
  });
}
