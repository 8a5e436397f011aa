/** Headers that a proxy copies from its clients into a call. */
import { assertEquals } from "#assert";
import { systemClock } from "../../src/base/clock.ts";
import type { GrpcEngine, GrpcEngineOptions } from "../../src/grpc/engine.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { blockFrames, callFields, content, headerBlock, message } from "../harness/h2_peer.ts";
import { Probe, probePath } from "../harness/probe.ts";
import { RawClient } from "../harness/raw_client.ts";

const ECHO = callFields(probePath("Echo"));
const isPseudo = ([name]: readonly [string, string]) => name.startsWith(":");
/** The headers of a call, with others before those of gRPC. */
const echoWith = (fields: readonly (readonly [string, string])[]) => [
  ...ECHO.filter(isPseudo),
  ...fields,
  ...ECHO.filter((field) => !isPseudo(field)),
];
const repeated = (count: number, value: string) =>
  Array.from({ length: count }, (_, index) => [`x-${index}`, value] as const);

const CASES: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  "45,000 bytes": [["tracestate", "a".repeat(45_000)]],
  "two of 30,000": [["tracestate", "a".repeat(30_000)], ["baggage", "a".repeat(30_000)]],
  "70,000 bytes": [["baggage", "a".repeat(70_000)]],
  "900,000 bytes": repeated(18, "a".repeat(50_000)),
  "2,000 fields": repeated(2_000, "a"),
  "200 fields of a trace": Array.from({ length: 200 }, () => ["tracestate", ""] as const),
  "20 long fields of a trace": Array.from({ length: 20 }, () => ["tracestate", "a".repeat(1_000)] as const),
  "no text": [["tracestate", "\xff\x01\x7f"], ["baggage", "\n\0"]],
};

/** No engine may answer them with an error of the call, nor of the connection. */
export function grpcEngineHeaders(
  name: string,
  start: (options: GrpcEngineOptions) => Promise<GrpcEngine>,
): void {
  Deno.test(`gRPC engine ${name}: long headers are no error of the call nor of the connection`, async () => {
    const log: string[] = [];
    const write = (line: string) => void log.push(line);
    const engine = await start({
      services: [new Probe().service],
      target: { kind: "tcp", host: "127.0.0.1", port: 0 },
      maxConnectionAgeMs: 0,
      maxConnectionAgeGraceMs: 0,
      logger: createLogger({ level: "debug", format: "text", clock: systemClock, write }),
      clock: systemClock,
      random: Math.random,
    });
    {
      await using client = await RawClient.connect(engine.address, { settings: [], pong: true });
      let id = 1;
      for (const [title, fields] of Object.entries(CASES)) {
        client.send(blockFrames(id, headerBlock(echoWith(fields))), content(id, message(title), true));
        await client.line(`DATA ${id} message "${title}"`);
        client.send(blockFrames(id + 2, headerBlock(ECHO)), content(id + 2, message("next"), true));
        await client.line(`DATA ${id + 2} message "next"`);
        id += 4;
      }
    }
    await engine.close(1_000);
    // One line a minute.
    assertEquals(log.map((line) => line.replace(/^.* msg=(".*?").* bytes=(\d+).*$/, "$1 $2")), [
      '"gRPC call with long headers; the headers that Weir does not use are dropped" 45129',
    ]);
  });
}
