import { assertEquals, assertMatch } from "#assert";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE } from "../../../src/wire/health.ts";
import { decide, GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: day, requests_per_unit: 3}\n",
};

/** Overall codes of calls, or the status codes of refusals, as one text each. */
function outcome(answer: Awaited<ReturnType<typeof decide>>): string {
  return "overallCode" in answer
    ? ["UNKNOWN", "OK", "OVER_LIMIT"][answer.overallCode] ?? "?"
    : `status ${answer.code}`;
}

const REFUSED: readonly [title: string, request: string, code: number, details: RegExp][] = [
  ["no domain", "", 3, /^rate limit domain must not be empty$/],
  ["no descriptors", "0a0473686f70", 3, /^rate limit descriptor list must not be empty$/],
  ["a message that breaks off", "0a0573686f70", 13, /^Cannot read field 1 of "RateLimitRequest"/],
  ["garbage", "ffffffffffffffffffffffffff", 13, /^Cannot read/],
  ["an override without unit", "0a0473686f7012110a090a0475736572120162120408051000", 3, /known unit/],
  ["an override with an unknown unit", "0a0473686f7012110a090a0475736572120162120408051009", 3, /known unit/],
];

const UNKNOWN_METHODS = [
  "/envoy.service.ratelimit.v3.RateLimitService/Nothing",
  "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit",
  "/pb.lyft.ratelimit.RateLimitService/ShouldRateLimit",
];

const BAD_BODIES = [
  "{",
  `{"domain":1}`,
  `{"nothing":1}`,
  "",
  new Blob([Uint8Array.of(0xff)]),
  `{"domain":""}`,
];

/** Observations of a service by a client of its gRPC port. */
const CHECKS: Readonly<Record<string, (weir: ServeFixture, client: GrpcClient) => void | Promise<void>>> = {
  async "an answer has limit, remaining and reset of every descriptor"(_weir, client) {
    const answer = await decide(client, "shop", "user=ann", "other=x");
    const statuses = "statuses" in answer ? answer.statuses : [];
    const reset = statuses[0]?.secondsUntilReset ?? 0;
    assertEquals(
      [
        reset > 0 && reset <= 86_400,
        ...statuses.map(({ code, currentLimit, limitRemaining }) => [
          code,
          currentLimit?.requestsPerUnit,
          limitRemaining,
        ]),
      ],
      [true, [1, 3, 2], [1, undefined, 0]],
    );
  },
  async "refused requests get the reason and are counted, over HTTP too"(weir, client) {
    const serviceErrors = async () =>
      (await weir.stats())["ratelimit.service.call.should_rate_limit.service_error"];
    let expected = 0;
    for (const [title, hex, code, details] of REFUSED) {
      const answer = await client.unary(SHOULD_RATE_LIMIT, Uint8Array.fromHex(hex));
      assertEquals([title, answer.code], [title, code], answer.details);
      assertMatch(answer.details, details);
      assertEquals([title, await serviceErrors()], [title, ++expected]);
    }
    for (const body of BAD_BODIES) {
      assertEquals([body, (await weir.ask(body)).status], [body, 400]);
      assertEquals([body, await serviceErrors()], [body, ++expected]);
    }
  },
  "the log has the reason of a refusal once"(weir) {
    const lines = weir.log.map((text) => JSON.parse(text)).filter((line) =>
      line["@message"] === "gRPC call refused"
    );
    const [{ "@timestamp": _time, ...first }, ...more] = lines;
    assertEquals([first, more.filter(({ message }) => message === first.message)], [{
      level: "warning",
      "@message": "gRPC call refused",
      code: "INVALID_ARGUMENT",
      message: "rate limit domain must not be empty",
    }, []]);
  },
  async "other methods are not implemented"(_weir, client) {
    for (const path of UNKNOWN_METHODS) {
      assertEquals([path, (await client.unary(path, new Uint8Array())).code], [path, 12]);
    }
  },
};

for (const GRPC_ENGINE of ["grpc-js", "native"]) {
  for (const socket of ["TCP", "unix"] as const) {
    Deno.test(`gRPC by ${GRPC_ENGINE} over ${socket}: a real client is limited, across reconnects`, async () => {
      const folder = await Deno.makeTempDir();
      const env: Record<string, string> = {
        GRPC_ENGINE,
        ...(socket === "unix" ? { GRPC_UDS: `${folder}/grpc.sock` } : {}),
      };
      {
        await using weir = await ServeFixture.start({ rules: RULES, env });
        assertEquals(weir.grpcAddress.startsWith("unix:"), socket === "unix");
        const outcomes: string[] = [];
        for (let connection = 0; connection < 2; connection++) {
          using client = new GrpcClient(weir.grpcAddress);
          for (let call = 0; call < 2; call++) {
            outcomes.push(outcome(await decide(client, "shop", "user=bob")));
          }
        }
        assertEquals(outcomes, ["OK", "OK", "OK", "OVER_LIMIT"]);
      }
      await Deno.remove(folder, { recursive: true });
    });
  }

  Deno.test(`gRPC by ${GRPC_ENGINE}: what one service answers`, async (test) => {
    const weir = await ServeFixture.start({ rules: RULES, env: { GRPC_ENGINE, LOG_FORMAT: "json" } });
    using client = new GrpcClient(weir.grpcAddress);
    for (const [title, check] of Object.entries(CHECKS)) await test.step(title, () => check(weir, client));
    await test.step("health: Check and Watch tell the truth for both names, until the end", async () => {
      await checkHealth(weir, client);
    });
  });
}

async function checkHealth(weir: ServeFixture, client: GrpcClient): Promise<void> {
  const check = async (service: string) => {
    const answer = await client.unary(
      "/grpc.health.v1.Health/Check",
      HEALTH_CHECK_REQUEST.encode({ service }),
    );
    return answer.code === 0
      ? HEALTH_CHECK_RESPONSE.decode(answer.messages[0] ?? new Uint8Array()).status
      : `status ${answer.code}`;
  };
  assertEquals([await check(""), await check("ratelimit"), await check("other")], [1, 1, "status 5"]);
  const seen: number[] = [];
  const request = HEALTH_CHECK_REQUEST.encode({ service: "ratelimit" });
  const watching = client.serverStream("/grpc.health.v1.Health/Watch", request, (message) => {
    seen.push(HEALTH_CHECK_RESPONSE.decode(message).status);
  });
  await until("the first status", () => seen.length === 1);
  await weir[Symbol.asyncDispose]();
  assertEquals([(await watching).code, seen], [14, [1, 2]]);
}
