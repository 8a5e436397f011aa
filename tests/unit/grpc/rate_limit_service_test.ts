import { assertEquals } from "#assert";
import { type CallContext, GRPC_CODES, GrpcError } from "../../../src/grpc/grpc_service.ts";
import { createRateLimitGrpcService } from "../../../src/grpc/rate_limit_service.ts";
import type { Caller } from "../../../src/ratelimit/decision/counter_cache.ts";
import { InvalidRequestError } from "../../../src/ratelimit/errors.ts";
import { decodeRateLimitResponse, encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import { ServiceFixture } from "../../harness/service_fixture.ts";

const LIMIT = "rate_limit: {unit: minute, requests_per_unit: 2}";
const RULES = `
domain: d
descriptors:
- {key: plain, ${LIMIT}}
- {key: allow, on_cache_failure: allow, ${LIMIT}}
- {key: deny, on_cache_failure: deny, ${LIMIT}}
- {key: local, on_cache_failure: local, ${LIMIT}}
`;

const CALL: CallContext = { header: () => undefined, cancelled: false };

function message(key: string): Uint8Array {
  return encodeRateLimitRequest({
    domain: "d",
    hitsAddend: 0,
    descriptors: [{ entries: [{ key, value: "v" }] }],
  });
}

/** Asks the one method; answers the overall code with what remains, or code and text of the refusal. */
async function ask(fixture: ServiceFixture, key: string): Promise<(number | string | undefined)[]> {
  const service = createRateLimitGrpcService((request, caller) =>
    fixture.service.shouldRateLimit(request, caller)
  );
  const [method] = service.methods;
  if (method?.kind !== "unary") throw new Error("the method is not there");
  try {
    const { overallCode, statuses } = decodeRateLimitResponse(await method.handle(message(key), CALL));
    const [status] = statuses;
    return [overallCode, status?.limitRemaining, status?.currentLimit?.requestsPerUnit];
  } catch (error) {
    return error instanceof GrpcError ? [GRPC_CODES[error.code], error.message] : [String(error)];
  }
}

const ANSWERS: readonly [key: string, answer: (number | string)[]][] = [
  ["plain", [14, "gone"]],
  ["allow", [1, 0, 2]],
  ["deny", [2, 0, 2]],
  ["local", [1, 1, 2]],
];

for (const [key, answer] of ANSWERS) {
  for (const later of [false, true]) {
    Deno.test(`gRPC service, cache failure${later ? ", later" : ""}: ${key}`, async () => {
      const cache = new FailingCache(["x"], { later });
      await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache });
      assertEquals(await ask(fixture, key), answer);
    });
  }
}

Deno.test("gRPC service: a key that the cache can never hold is the caller's fault", async () => {
  const cache = new FailingCache([]);
  cache.error = new InvalidRequestError("the key is too long", { backend: "mc" });
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache });
  assertEquals(await ask(fixture, "allow"), [3, "the key is too long"]);
});

Deno.test("gRPC service: the call itself is the caller that the cache sees", async () => {
  const cache = new FailingCache([]);
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache });
  await ask(fixture, "plain");
  const callers: (Caller | undefined)[] = cache.callers;
  assertEquals(callers.map((caller) => caller?.call === CALL), [true]);
});

Deno.test("one entry or descriptor too many is refused, and none is left out", async () => {
  await using fixture = new ServiceFixture({
    files: {
      "r.yaml": "domain: d\ndescriptors:\n- {key: k, rate_limit: {unit: minute, requests_per_unit: 2}}\n",
    },
  });
  const service = createRateLimitGrpcService((request, caller) =>
    fixture.service.shouldRateLimit(request, caller)
  );
  const [method] = service.methods;
  const entries = (count: number) => Array.from({ length: count }, () => ({ key: "k", value: "v" }));
  const ask = async (descriptors: readonly { entries: { key: string; value: string }[] }[]) => {
    if (method?.kind !== "unary") throw new Error("the method is not there");
    const bytes = encodeRateLimitRequest({ domain: "d", descriptors });
    try {
      await method.handle(bytes, { header: () => undefined, cancelled: false });
      return "answered";
    } catch (error) {
      return error instanceof GrpcError ? `${error.code} ${error.message}` : String(error);
    }
  };
  const many = (count: number) => Array.from({ length: count }, () => ({ entries: entries(1) }));
  assertEquals([await ask([{ entries: entries(64) }]), await ask(many(1_000))], ["answered", "answered"]);
  assertEquals([await ask([{ entries: entries(65) }]), await ask(many(1_001))], [
    "INVALID_ARGUMENT descriptor 0 must not have more than 64 entries, but has 65",
    "INVALID_ARGUMENT rate limit descriptor list must not be longer than 1000, but has 1001",
  ]);
});
