import { assertEquals } from "#assert";
import type { RateLimitRouteOptions } from "../../../../src/http/routes/rate_limit_route.ts";
import type { Decision } from "../../../../src/ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../../../../src/ratelimit/errors.ts";
import type { RateLimitRequest } from "../../../../src/ratelimit/request.ts";
import { decisionHandler, HandledHttp, OK_DECISION } from "../../../harness/http_fixture.ts";

const BODY = `{"domain":"d"}`;
const MIB = 1_048_576;

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

const DECISIONS: readonly { name: string; decide: RateLimitRouteOptions["decide"]; status: number }[] = [
  { name: "OK", decide: () => OK_DECISION, status: 200 },
  { name: "OK, later", decide: () => Promise.resolve(OK_DECISION), status: 200 },
  { name: "OVER_LIMIT", decide: () => ({ ...OK_DECISION, overallCode: "OVER_LIMIT" }), status: 429 },
];

for (const { name, decide, status } of DECISIONS) {
  Deno.test(`a decision of ${name} is ${status}`, async () => {
    const served = new HandledHttp(decisionHandler(decide));
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

const HEADERS: readonly (readonly [
  name: string,
  decision: Partial<Decision>,
  headers: Readonly<Record<string, string | null>>,
])[] = [
  ["OK", {}, { "retry-after": null }],
  ["OK in shadow mode", { statuses: [over(9)] }, { "retry-after": null }],
  ["over several limits", {
    overallCode: "OVER_LIMIT",
    statuses: [over(9), over(40), { ...over(70), code: "OK", limitRemaining: 1 }],
  }, { "retry-after": "40" }],
  ["over a limit without a time", { overallCode: "OVER_LIMIT", statuses: [over()] }, { "retry-after": "1" }],
  ["with headers to add", {
    responseHeadersToAdd: [
      { key: "X-RateLimit-Limit", value: "5" },
      { key: "RateLimit", value: '"user";r=4;t=39' },
      { key: "Content-Type", value: "4" },
      { key: "Content-Length", value: "4" },
    ],
  }, {
    "x-ratelimit-limit": "5",
    "ratelimit": '"user";r=4;t=39',
    "content-type": "application/json",
    "content-length": null,
  }],
  ["with a name for Retry-After", {
    overallCode: "OVER_LIMIT",
    statuses: [over(9)],
    responseHeadersToAdd: [{ key: "Retry-After", value: "39" }],
  }, { "retry-after": "39" }],
];

for (const [name, decision, headers] of HEADERS) {
  Deno.test(`the headers of a decision: ${name}`, async () => {
    const response = await post(
      new HandledHttp(decisionHandler(() => ({ ...OK_DECISION, ...decision }))),
      BODY,
    );
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

const CANNOT_READ = (field: string, reason: string) => ({
  detail: `Cannot read "${field}": ${reason}`,
  field,
});
const NO_JSON = "not valid JSON at line 1 column 1";
const AT_2 = "not valid JSON at line 1 column 2";
const LARGE = "larger than 1048576 bytes";
const TOO_LARGE = CANNOT_READ("body", LARGE);
const HITS = "must be a whole number of 0 or more";
const OF_HITS = '{"descriptors":[{"hitsAddend":-1}]}';

/** A body, or what the decision throws; the status, the reason, and what the problem says besides. */
const REFUSED: readonly (readonly [
  name: string,
  sent: (() => BodyInit) | Error,
  status: number,
  reason: string,
  more?: Readonly<Record<string, string>>,
])[] = [
  ["no JSON", () => "}", 400, NO_JSON, CANNOT_READ("body", NO_JSON)],
  ["a byte outside of a string", () => Uint8Array.of(0x7b, 0xff, 0x7d), 400, AT_2, CANNOT_READ("body", AT_2)],
  ["a wrong field", () => OF_HITS, 400, HITS, CANNOT_READ("descriptors[0].hitsAddend", HITS)],
  ["what the core refuses", new InvalidRequestError("an empty domain"), 400, "an empty domain"],
  ["what the core refuses for one field", new InvalidRequestError("why", { field: "a[3]" }), 400, "why", {
    field: "a[3]",
  }],
  ["a call before the first rules", new NoConfigurationError(), 503, "no rate limit configuration loaded"],
  ["a call while the cache is down", new CacheError("kv", "no connection"), 503, "no connection"],
  ["what the cache can never hold", new InvalidRequestError("too long", { backend: "mc" }), 400, "too long"],
  ["a fault of the program", new TypeError("inside"), 500, "internal error"],
  ["a body of 1 MiB and a byte with its length", () => " ".repeat(MIB + 1), 413, LARGE, TOO_LARGE],
  ["a chunked body of 1 MiB and a byte", () => chunked(MIB + 1), 413, LARGE, TOO_LARGE],
];

for (const [name, sent, status, reason, more] of REFUSED) {
  for (const later of sent instanceof Error ? [false, true] : [false]) {
    Deno.test(`${name} is ${status}${later ? ", later" : ""}`, async () => {
      const served = new HandledHttp(decisionHandler(() => {
        if (!(sent instanceof Error)) return OK_DECISION;
        if (later) return Promise.reject(sent);
        throw sent;
      }));
      const response = await post(served, sent instanceof Error ? BODY : sent());
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
            detail: reason,
            reason,
            ...more,
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
  const served = new HandledHttp(decisionHandler(() => OK_DECISION));
  const response = await post(served, BODY.padEnd(MIB));
  await response.body?.cancel();
  assertEquals(response.status, 200);
});

Deno.test("a body in many pieces is put together, also in the middle of a character", async () => {
  const seen: RateLimitRequest[] = [];
  const served = new HandledHttp(decisionHandler((request) => {
    seen.push(request);
    return OK_DECISION;
  }));
  const bytes = new TextEncoder().encode(`{"domain":"\u00e4\u{1f600}"}`);
  const pieces = ReadableStream.from(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  const response = await post(served, pieces);
  await response.body?.cancel();
  assertEquals(seen, [{ domain: "\u00e4\u{1f600}", descriptors: [], hitsAddend: 0 }]);
});

Deno.test("a caller that waits is not cancelled", async () => {
  const cancelled: boolean[] = [];
  const served = new HandledHttp(decisionHandler((_, caller) => {
    cancelled.push(caller.cancelled);
    return OK_DECISION;
  }));
  const response = await post(served, BODY);
  await response.body?.cancel();
  assertEquals([response.status, cancelled], [200, [false]]);
});
