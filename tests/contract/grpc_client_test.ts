import { assertEquals, assertMatch } from "#assert";
import { systemClock } from "../../src/base/clock.ts";
import { GrpcConnection } from "../../src/grpc/client/grpc_connection.ts";
import type { GrpcEngine, GrpcEngineOptions } from "../../src/grpc/engine.ts";
import { startGrpcJs } from "../../src/grpc/grpc_js_engine.ts";
import type { GrpcError } from "../../src/grpc/grpc_service.ts";
import { LIMITS } from "../../src/grpc/native/limits.ts";
import { startNative } from "../../src/grpc/native/native_engine.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { makeCertificates, pairOf } from "../harness/certificates.ts";
import { outcomeOf } from "../harness/client_bed.ts";
import { Probe, probePath } from "../harness/probe.ts";
import { PythonGrpcServer } from "./python_grpc_server.ts";
import { needing } from "../harness/tools.ts";
import { grpcClientContract, type ProbeServer } from "./grpc_client_contract.ts";

/** An engine of Weir that serves the probe. */
async function engine(
  start: (options: GrpcEngineOptions) => Promise<GrpcEngine>,
  maxQueuedBytes = Infinity,
): Promise<ProbeServer> {
  const started = await start({
    services: [new Probe().service],
    target: { kind: "tcp", host: "127.0.0.1", port: 0 },
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    logger: createLogger({ level: "error", format: "text", clock: systemClock, write: () => {} }),
    clock: systemClock,
    random: () => 0.5,
  });
  const port = Number(started.address.split(":").at(-1));
  return { port, maxQueuedBytes, [Symbol.asyncDispose]: () => started.close(0) };
}

grpcClientContract("the engine of Weir", () => engine(startNative, LIMITS.queuedStreamBytes));
grpcClientContract("grpc-js", () => engine(startGrpcJs));
grpcClientContract("the library of Python", () => PythonGrpcServer.start(), ["grpc-python"]);
grpcClientContract(
  "the library of Python, whose answers are compressed",
  () => PythonGrpcServer.start({ isCompressed: true }),
  ["grpc-python"],
);

needing("grpc-python").test(
  "gRPC client with the library of Python: trailing metadata of an error",
  async () => {
    await using server = await PythonGrpcServer.start();
    await using client = await GrpcConnection.open({ address: { host: "127.0.0.1", port: server.port } });
    const refused = await client.unary(probePath("Refuse"), new TextEncoder().encode("no"))
      .then(() => undefined, (error: GrpcError) => error);
    assertEquals([refused?.message, [...refused?.metadata ?? []].toSorted()], ["no", [
      ["grpc-status-details-bin", "CAM"],
      ["x-reason", "test"],
    ]]);
  },
);

needing("grpc-python").test(
  "gRPC client with the library of Python: TLS with client certificates",
  async () => {
    await using certificates = await makeCertificates();
    await using server = await PythonGrpcServer.start({ tls: certificates });
    const ca = await Deno.readTextFile(certificates.authority.certFile);
    const address = { host: "localhost", port: server.port };
    const called = (tls: { readonly ca: string; readonly cert?: string; readonly key?: string }) =>
      outcomeOf((async () => {
        await using client = await GrpcConnection.open({ address, tls });
        return await client.unary(probePath("Echo"), new TextEncoder().encode("hello"));
      })());
    assertEquals(await called({ ca, ...await pairOf(certificates.client) }), "hello");
    assertMatch(await called({ ca, ...await pairOf(certificates.otherClient) }), /^UNAVAILABLE: /);
    assertMatch(await called({ ca }), /^UNAVAILABLE: /);
  },
);
