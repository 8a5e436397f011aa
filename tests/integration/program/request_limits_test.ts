/** Limits and headers that depend on all descriptors of a request, by both gRPC engines and over HTTP. */
import { assertEquals } from "#assert";
import { FakeClock } from "../../harness/fake_clock.ts";
import { GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { decodeRateLimitResponse, encodeRateLimitRequest } from "../../../src/wire/rls.ts";

const RULES = {
  "edge.yaml": `domain: edge
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: path, rate_limit: { unit: second, requests_per_unit: 10 } }
`,
};
const ENGINES = ["native", "grpc-js"];

for (const GRPC_ENGINE of ENGINES) {
  Deno.test(`headers of all descriptors: ${GRPC_ENGINE} and HTTP`, async () => {
    await using weir = await ServeFixture.start({
      clock: new FakeClock(Date.UTC(2026, 0, 1, 12)),
      rules: RULES,
      env: {
        GRPC_ENGINE,
        LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED: "true",
        LIMIT_STANDARD_HEADERS_ENABLED: "true",
      },
    });
    const descriptors = [
      { entries: [{ key: "user", value: "ann" }] },
      { entries: [{ key: "path", value: "/" }] },
      { entries: [{ key: "other", value: "x" }] },
    ];
    using client = new GrpcClient(weir.grpcAddress);
    const request = encodeRateLimitRequest({ domain: "edge", hitsAddend: 0, descriptors });
    const { messages: [message = new Uint8Array()] } = await client.unary(SHOULD_RATE_LIMIT, request);
    const { responseHeadersToAdd } = decodeRateLimitResponse(message);
    assertEquals(responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`), [
      "ratelimit-limit-minutes: 5",
      "ratelimit-remaining-minutes: 4",
      "ratelimit-limit-seconds: 10",
      "ratelimit-remaining-seconds: 9",
      'RateLimit-Policy: "user";q=5;w=60, "path";q=10;w=1',
      'RateLimit: "user";r=4;t=60, "path";r=9;t=1',
    ]);
    const body = JSON.stringify({ domain: "edge", descriptors });
    const response = await fetch(`http://${weir.httpAddress}/json`, { method: "POST", body });
    await response.body?.cancel();
    const names = ["ratelimit-limit-minutes", "ratelimit-remaining-minutes", "ratelimit-policy", "ratelimit"];
    assertEquals(names.map((name) => response.headers.get(name)), [
      "5",
      "3",
      '"user";q=5;w=60, "path";q=10;w=1',
      '"user";r=3;t=60, "path";r=8;t=1',
    ]);
  });
}
