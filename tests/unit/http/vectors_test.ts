import { assertEquals } from "@std/assert";
import { rateLimitRoute } from "../../../src/http/rate_limit_route.ts";
import { createRouter } from "../../../src/http/router.ts";
import type { Code, CurrentLimit, Decision } from "../../../src/ratelimit/decision.ts";
import type { RateLimitRequest } from "../../../src/ratelimit/request.ts";
import vectors from "../../testdata/vectors.json" with { type: "json" };
import { FakeClock } from "../../harness/fake_clock.ts";
import { KeptLog } from "../../harness/http_fixture.ts";

interface Answer {
  readonly overallCode: Code;
  readonly statuses: readonly {
    readonly code: Code;
    readonly currentLimit?: Omit<CurrentLimit, "name">;
    readonly limitRemaining?: number;
    readonly durationUntilReset?: string;
  }[];
}

interface Step {
  readonly http: { readonly method: string; readonly path: string; readonly body: string };
  readonly expect: { readonly httpStatus: number; readonly contentType?: string; readonly httpBody?: Answer };
}

const CASES = (vectors as readonly { id: string; area: string; steps: unknown }[])
  .filter(({ area }) => area === "http")
  .map(({ id, steps }) => ({ id, steps: steps as readonly Step[] }));

/** The requests that must reach the decision, by case; the cases that are not here must not reach it. */
const REQUESTS: Readonly<Record<string, RateLimitRequest>> = {
  "http-ok": request("k"),
  "http-snake-case-accepted": request("k", { hitsAddend: 2, ownHits: 3 }),
  "http-over": request("k", { ownHits: 9 }),
  "http-no-match": request("q"),
  "http-unlimited": request("free"),
};

function request(key: string, hits: { hitsAddend?: number; ownHits?: number } = {}): RateLimitRequest {
  const own = hits.ownHits === undefined ? {} : { hitsAddend: hits.ownHits };
  return {
    domain: "d",
    descriptors: [{ entries: [{ key, value: "v" }], ...own }],
    hitsAddend: hits.hitsAddend ?? 0,
  };
}

/** The decision that must be written as this answer. */
function decisionOf(answer: Answer | undefined): Decision {
  const statuses = (answer?.statuses ?? []).map((status) => ({
    code: status.code,
    ...(status.currentLimit === undefined ? {} : { currentLimit: { name: "", ...status.currentLimit } }),
    limitRemaining: status.limitRemaining ?? 0,
    ...(status.durationUntilReset === undefined
      ? {}
      : { secondsUntilReset: Number.parseInt(status.durationUntilReset, 10) }),
  }));
  return {
    overallCode: answer?.overallCode ?? "OK",
    statuses,
    responseHeadersToAdd: [],
    dynamicMetadata: undefined,
  };
}

Deno.test("the vectors hold eight HTTP cases", () => assertEquals(CASES.length, 8));

for (const { id, steps } of CASES) {
  Deno.test(`vector ${id}`, async () => {
    for (const { http, expect } of steps) {
      const reached: RateLimitRequest[] = [];
      const decide = (request: RateLimitRequest) => {
        reached.push(request);
        return decisionOf(expect.httpBody);
      };
      const clock = new FakeClock();
      const handle = createRouter([rateLimitRoute({ decide, clock })], { logger: new KeptLog(), clock });
      const request = new Request(`http://127.0.0.1${http.path}`, { method: http.method, body: http.body });
      const response = await handle(request, new AbortController().signal, "127.0.0.1");
      const body: unknown = await response.json();
      assertEquals(response.status, expect.httpStatus);
      if (expect.contentType !== undefined) {
        assertEquals(response.headers.get("content-type"), expect.contentType);
      }
      if (expect.httpBody !== undefined) assertEquals(body, expect.httpBody);
      const expected = REQUESTS[id];
      assertEquals(reached, expected === undefined ? [] : [expected]);
    }
  });
}
