/** Headers of all descriptors and limits that come with a request, by both gRPC engines and over HTTP. */
import { assertEquals, assertMatch } from "#assert";
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

/** A request for `user=ann` of the domain `edge` with these fields of a limit, in hexadecimal. */
function requestWithLimit(fields: string): Uint8Array {
  const entry = field(1, field(1, textHex("user")) + field(2, textHex("ann")));
  return Uint8Array.fromHex(field(1, textHex("edge")) + field(2, entry + field(2, fields)));
}

function field(number: number, hex: string): string {
  return [number << 3 | 2, hex.length / 2].map((byte) => byte.toString(16).padStart(2, "0")).join("") + hex;
}

function textHex(text: string): string {
  return new TextEncoder().encode(text).toHex();
}

/** A limit of 7 per minute with further fields: a multiplier of 10 as a number and as a message, others. */
const UNKNOWN_FIELDS = [
  "0807100218 0a",
  "080710021a02080a",
  "0807100220 01",
  "08071002f8ffffff0f01",
  "08071002f0ffffff0f01",
]
  .map((hex) => hex.replace(" ", ""));

for (const GRPC_ENGINE of ENGINES) {
  Deno.test(`an unknown field of a limit: ${GRPC_ENGINE} decides, and logs each once`, async () => {
    await using weir = await ServeFixture.start({ rules: RULES, env: { GRPC_ENGINE, LOG_FORMAT: "json" } });
    using client = new GrpcClient(weir.grpcAddress);
    const answers: unknown[] = [];
    for (const fields of [...UNKNOWN_FIELDS, ...UNKNOWN_FIELDS]) {
      const { code, messages: [message = new Uint8Array()] } = await client.unary(
        SHOULD_RATE_LIMIT,
        requestWithLimit(fields),
      );
      const [status] = decodeRateLimitResponse(message).statuses;
      answers.push([code, status?.currentLimit?.requestsPerUnit, status?.currentLimit?.unit]);
    }
    assertEquals(answers, Array(2 * UNKNOWN_FIELDS.length).fill([0, 7, 2]));
    const lines = weir.log.map((line) => JSON.parse(line)).filter((line) => "field" in line);
    assertEquals(lines.map(({ level, field, message }) => [level, field, message]), [
      ["warning", 3, "RateLimitDescriptor.RateLimitOverride"],
      ["warning", 4, "RateLimitDescriptor.RateLimitOverride"],
      // Those above 15 are one kind.
      ["warning", 536_870_911, "RateLimitDescriptor.RateLimitOverride"],
    ]);
  });
}

interface Answer {
  readonly statuses?: readonly { readonly limitRemaining?: number; readonly durationUntilReset?: string }[];
}

Deno.test("unit_multiplier of a limit: the counter and the window are those of a rule with it", async () => {
  const rules = {
    "edge.yaml": "domain: edge\ndescriptors:\n" +
      "- { key: user, rate_limit: { unit: minute, unit_multiplier: 15, requests_per_unit: 5 } }\n",
  };
  await using weir = await ServeFixture.start({ clock: new FakeClock(Date.UTC(2026, 0, 1, 12, 1)), rules });
  const ask = async (limit: object | undefined) => {
    const descriptors = [{ entries: [{ key: "user", value: "ann" }], limit }];
    const { status, body } = await weir.ask({ domain: "edge", descriptors });
    const [first] = (body as Answer).statuses ?? [];
    return first === undefined
      ? [status, JSON.stringify(body)]
      : [status, first.limitRemaining, first.durationUntilReset];
  };
  const own = { requestsPerUnit: 9, unit: "MINUTE" };
  assertEquals(await ask({ ...own, unitMultiplier: 15 }), [200, 8, "840s"]);
  assertEquals(await ask(undefined), [200, 3, "840s"]);
  assertEquals(await ask({ ...own, unit_multiplier: "15" }), [200, 6, "840s"]);
  assertEquals(await ask(own), [200, 8, "60s"]);
  for (const unitMultiplier of [0, 4_294_967_296, -1, 1.5, "x", true]) {
    const [status, text] = await ask({ ...own, unitMultiplier });
    assertEquals([unitMultiplier, status], [unitMultiplier, 400]);
    assertMatch(
      String(text),
      /descriptors\[0\]\.limit\.unitMultiplier.*must be a whole number from 1 to 4294967295/,
    );
  }
});

for (const GRPC_ENGINE of ENGINES) {
  Deno.test(`STATS_REQUEST_LIMIT_VALUES: names of statistics by ${GRPC_ENGINE} and over HTTP`, async () => {
    const names = async (env: Readonly<Record<string, string>>) => {
      await using weir = await ServeFixture.start({ rules: RULES, env: { GRPC_ENGINE, ...env } });
      using client = new GrpcClient(weir.grpcAddress);
      for (const value of ["ann", "bob"]) {
        const entries = [{ key: "plan", value: "free" }, { key: "user", value }];
        const request = {
          domain: "edge",
          descriptors: [{ entries, limit: { requestsPerUnit: 9, unit: 2 } }],
        };
        const { code } = await client.unary(SHOULD_RATE_LIMIT, encodeRateLimitRequest(request));
        assertEquals([code, (await weir.ask(request)).status], [0, 200]);
      }
      const stats = Object.entries(await weir.stats());
      return stats.filter(([name]) => /edge\.plan.*total_hits/.test(name)).map(([name, hits]) =>
        `${name.slice("ratelimit.service.rate_limit.edge.".length, -".total_hits".length)} ${hits}`
      );
    };
    assertEquals(await names({}), ["plan_free.user_ann 2", "plan_free.user_bob 2"]);
    assertEquals(await names({ STATS_REQUEST_LIMIT_VALUES: "plan" }), ["plan_free.user 4"]);
    assertEquals(await names({ STATS_REQUEST_LIMIT_VALUES: "none" }), ["plan.user 4"]);
  });
}
