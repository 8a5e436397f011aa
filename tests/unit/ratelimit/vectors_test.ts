import { assertEquals, assertMatch } from "#assert";
import { rateLimitRoute } from "../../../src/http/routes/rate_limit_route.ts";
import { createRouter } from "../../../src/http/server/router.ts";
import { problemText } from "../../../src/base/problem.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { loadRules } from "../../harness/service_fixture.ts";
import { COUNTED, playVector, vectorFixture } from "../../harness/vector_play.ts";
import { VECTORS } from "../../harness/vectors.ts";

/** The pattern of our text of a problem, by the reason that a case gives. */
const REASONS: Readonly<Record<string, RegExp>> = {
  "invalid unit 'unknown'": /invalid rate limit unit 'unknown'/,
  "invalid unit ''": /invalid rate limit unit ''/,
  "unit with unlimited": /should not specify rate limit unit when unlimited/,
  "empty domain": /config file cannot have empty domain/,
  "empty key": /descriptor has empty key/,
  "duplicate composite key d.k_v": /duplicate descriptor composite key 'd\.k_v'/,
  "duplicate composite key d.k": /duplicate descriptor composite key 'd\.k'/,
  "non-string key": /key.*(string|text)/,
  "list item is not a mapping": /expected a mapping/,
  "bad leaf type": /whole number/,
  "bad requests_per_unit": /requests_per_unit.*(number|4294967295)/,
  "shadow_mode not boolean": /shadow_mode.*(true|boolean)/,
  "yaml syntax": /YAML|quote|quoted/i,
  "top level is not a mapping": /expected a mapping/,
  "descriptors has wrong type": /descriptors.*list/,
  "duplicate domain d": /duplicate domain 'd' in config file/,
};

for (const vector of VECTORS.filter((vector) => vector.expect_config_error)) {
  Deno.test(`vector ${vector.id}: ${vector.why}`, () => {
    const { rules, problems } = loadRules(vector.config);
    const reason = vector.reject_reason ?? "";
    const expected = REASONS[reason] ?? new RegExp(reason.replaceAll(/[.*+?]/g, "\\$&"));
    assertEquals(rules, undefined);
    assertMatch(
      problems.filter(({ severity }) => severity === "error").map(problemText).join("\n"),
      expected,
    );
  });
}

for (const vector of COUNTED) {
  Deno.test(`vector ${vector.id}: ${vector.why}`, async () => {
    await using fixture = vectorFixture(vector);
    await playVector(fixture, vector);
  });
}

for (const vector of VECTORS.filter(({ steps }) => steps.some(({ http }) => http))) {
  Deno.test(`vector ${vector.id} over HTTP: ${vector.why}`, async () => {
    await using fixture = vectorFixture(vector);
    const { clock } = fixture;
    const route = rateLimitRoute({ decide: (request) => fixture.service.shouldRateLimit(request), clock });
    const handle = createRouter([route], { logger: new RecordedLogger(), clock });
    for (const { http, expect } of vector.steps) {
      const { method = "GET", path = "/", body = "" } = http ?? {};
      const request = new Request(`http://127.0.0.1${path}`, { method, body });
      const response = await handle(request, new AbortController().signal, "127.0.0.1");
      const text = await response.text();
      assertEquals(response.status, expect.httpStatus);
      if (expect.contentType !== undefined) {
        assertEquals(response.headers.get("content-type"), expect.contentType);
      }
      if (typeof expect.httpBody === "string") assertEquals(text, expect.httpBody);
      if (typeof expect.httpBody === "object") assertEquals(JSON.parse(text), expect.httpBody);
    }
  });
}

Deno.test("vectors: every case is played, and every reason is known", () => {
  assertEquals(VECTORS.length, 133);
  const http = VECTORS.filter(({ steps }) => steps.some((step) => step.http)).length;
  const refused = VECTORS.filter((vector) => vector.expect_config_error).length;
  assertEquals(COUNTED.length + http + refused, VECTORS.length);
});
