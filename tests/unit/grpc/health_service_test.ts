import { assertEquals, assertThrows } from "#assert";
import { createHealthService } from "../../../src/grpc/health_service.ts";
import {
  GrpcError,
  type GrpcMethod,
  type GrpcService,
  type ServerStreamingMethod,
  type UnaryMethod,
} from "../../../src/grpc/grpc_service.ts";
import { Health } from "../../../src/base/health.ts";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE, SERVING_STATUS } from "../../../src/wire/health.ts";

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = SERVING_STATUS;
const CALL = { header: () => undefined, cancelled: false };
const MALFORMED = Uint8Array.fromHex("0a05");

Deno.test("the health service has the published name and methods", () => {
  const { name, methods } = createHealthService(new Health());
  assertEquals({ name, methods: methods.map((method) => [method.kind, method.name]) }, {
    name: "grpc.health.v1.Health",
    methods: [["unary", "Check"], ["server_streaming", "Watch"]],
  });
});

for (const service of ["", "ratelimit"]) {
  Deno.test(`Check of "${service}" tells the truth`, async () => {
    const health = new Health();
    const check = methodOf(createHealthService(health), "unary");
    const ask = async () => {
      return HEALTH_CHECK_RESPONSE.decode(await check.handle(HEALTH_CHECK_REQUEST.encode({ service }), CALL))
        .status;
    };
    assertEquals(await ask(), SERVING);
    health.set("cache", false, "no connection");
    assertEquals(await ask(), NOT_SERVING);
    health.set("cache", true);
    assertEquals(await ask(), SERVING);
  });

  Deno.test(`Watch of "${service}" sends the status immediately and every change until it is closed`, () => {
    const health = new Health();
    health.set("config", false, "nothing loaded");
    const { sent, close } = openWatch(health, service);
    assertEquals(sent, [NOT_SERVING]);
    health.set("cache", false, "no connection");
    health.set("cache", true);
    assertEquals(sent, [NOT_SERVING]);
    health.set("config", true);
    health.set("sigterm", false, "stopping");
    assertEquals(sent, [NOT_SERVING, SERVING, NOT_SERVING]);
    close();
    health.set("sigterm", true);
    assertEquals(sent, [NOT_SERVING, SERVING, NOT_SERVING]);
  });
}

Deno.test("Check of an unknown name is NOT_FOUND", () => {
  const check = methodOf(createHealthService(new Health()), "unary");
  assertEquals(refusalOf(() => check.handle(HEALTH_CHECK_REQUEST.encode({ service: "other" }), CALL)), {
    code: "NOT_FOUND",
    message:
      'Cannot check health of "other": there is no such service, ask for "ratelimit" or the empty name',
  });
});

Deno.test("Check of a domain is SERVICE_UNKNOWN without rules, and the truth with rules", async () => {
  const health = new Health();
  const check = methodOf(createHealthService(health, (domain) => domain === "shop/eu"), "unary");
  const ask = async (service: string) =>
    HEALTH_CHECK_RESPONSE.decode(await check.handle(HEALTH_CHECK_REQUEST.encode({ service }), CALL)).status;
  assertEquals(
    [await ask("ratelimit/shop/eu"), await ask("ratelimit/shop"), await ask("ratelimit/")],
    [SERVING, SERVICE_UNKNOWN, SERVICE_UNKNOWN],
  );
  health.set("cache", false);
  assertEquals([await ask("ratelimit/shop/eu"), await ask("ratelimit/shop")], [NOT_SERVING, SERVICE_UNKNOWN]);
});

Deno.test("Watch of an unknown name sends SERVICE_UNKNOWN once and stays open", () => {
  const health = new Health();
  const { sent, close } = openWatch(health, "other");
  health.set("cache", false);
  assertEquals(sent, [SERVICE_UNKNOWN]);
  close();
});

Deno.test("Check and Watch refuse bytes that are no request", () => {
  const service = createHealthService(new Health());
  const refused = {
    code: "INTERNAL",
    message: 'Cannot read field 1 of "HealthCheckRequest": length 5 goes beyond the 0 bytes left',
  };
  const calls = [
    () => methodOf(service, "unary").handle(MALFORMED, CALL),
    () => methodOf(service, "server_streaming").open(MALFORMED, () => {}, CALL),
  ];
  for (const call of calls) assertEquals(refusalOf(call), refused);
});

function refusalOf(call: () => unknown): { code: string; message: string } {
  const error = assertThrows(call);
  return { code: error instanceof GrpcError ? error.code : error.name, message: error.message };
}

function openWatch(health: Health, service: string): { sent: number[]; close: () => void } {
  const sent: number[] = [];
  const watch = methodOf(createHealthService(health), "server_streaming");
  const send = (message: Uint8Array) => void sent.push(HEALTH_CHECK_RESPONSE.decode(message).status);
  return { sent, close: watch.open(HEALTH_CHECK_REQUEST.encode({ service }), send, CALL) };
}

function methodOf(service: GrpcService, kind: "unary"): UnaryMethod;
function methodOf(service: GrpcService, kind: "server_streaming"): ServerStreamingMethod;
function methodOf(service: GrpcService, kind: "unary" | "server_streaming"): GrpcMethod {
  const method = service.methods.find((one) => one.kind === kind);
  if (method === undefined) throw new RangeError(`Cannot find method "${kind}": the service has none`);
  return method;
}
