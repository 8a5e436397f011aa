import { systemClock } from "../../src/base/clock.ts";
import type { GrpcEngine, GrpcEngineOptions } from "../../src/grpc/engine.ts";
import { type BidiPeer, type CallContext, GrpcError, type GrpcService } from "../../src/grpc/grpc_service.ts";
import { createLogger } from "../../src/telemetry/logger.ts";

/** Starts an engine. */
export type Start = (options: GrpcEngineOptions) => Promise<GrpcEngine>;

const encoder = new TextEncoder();
/** The bytes of a text. */
export const bytes = (text: string): Uint8Array => encoder.encode(text);
/** The text of a message; empty without one. */
export const text = (message: Uint8Array | undefined): string => new TextDecoder().decode(message);

/** Longest message of the method `Pushed`. */
export const LONG_MESSAGE_BYTES = 5 * 1_048_576;

/** A service of the test: what it is asked decides how it answers. */
export class Probe {
  /** Streams that were opened and have not ended. */
  openStreams = 0;
  send: (message: Uint8Array) => void = () => {};
  /** The peer of the call in both directions, and the lengths of its messages. */
  peer: BidiPeer | undefined;
  readonly received: number[] = [];
  readonly hold = Promise.withResolvers<void>();
  /** The call that is held. */
  held: CallContext | undefined;
  /** True if it was over already when it came. */
  wasGone = false;

  readonly service: GrpcService = {
    name: "test.Probe",
    methods: [
      {
        kind: "unary",
        name: "Echo",
        handle: (request, call) => bytes(`${text(request)} ${call.header("b3") ?? "-"}`),
      },
      { kind: "unary", name: "Size", handle: (request) => bytes(String(request.length)) },
      { kind: "unary", name: "Later", handle: (request) => Promise.resolve().then(() => request) },
      {
        kind: "unary",
        name: "Hold",
        handle: (request, call) => {
          this.held = call;
          this.wasGone = call.cancelled;
          return this.hold.promise.then(() => request);
        },
      },
      {
        kind: "unary",
        name: "Refuse",
        handle: () => {
          throw new GrpcError("INVALID_ARGUMENT", "wrong: 50 % of ключ\nnext line");
        },
      },
      {
        kind: "unary",
        name: "RefuseLater",
        handle: () => Promise.reject(new GrpcError("UNAVAILABLE", "later")),
      },
      {
        kind: "unary",
        name: "Break",
        handle: () => {
          throw new TypeError("secret detail");
        },
      },
      {
        kind: "server_streaming",
        name: "Watch",
        open: (request, send) => {
          if (request.length === 0) throw new GrpcError("NOT_FOUND", "nothing to watch");
          this.openStreams++;
          this.send = send;
          send(request);
          return () => void this.openStreams--;
        },
      },
      {
        kind: "bidi",
        name: "Chat",
        open: (peer) => ({
          receive: (message) => {
            if (text(message) === "refuse") throw new GrpcError("INVALID_ARGUMENT", "no");
            if (text(message) !== "silent") peer.send(bytes(text(message).toUpperCase()));
          },
        }),
      },
      {
        kind: "bidi",
        name: "Pushed",
        maxMessageBytes: LONG_MESSAGE_BYTES,
        open: (peer) => {
          this.openStreams++;
          return {
            receive: (message) => {
              this.received.push(message.length);
              this.peer = peer;
            },
            ended: () => void this.openStreams--,
          };
        },
      },
    ],
  };
}

/** A running engine with its probe. */
interface Bed {
  readonly probe: Probe;
  readonly engine: GrpcEngine;
  readonly log: string[];
}

/** Starts an engine with the probe on a free port. */
export async function open(start: Start, part: Partial<GrpcEngineOptions> = {}): Promise<Bed> {
  const probe = new Probe();
  const log: string[] = [];
  const write = (line: string) => void log.push(line);
  const engine = await start({
    services: [probe.service],
    target: { kind: "tcp", host: "127.0.0.1", port: 0 },
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    logger: createLogger({ level: "error", format: "text", clock: systemClock, write }),
    clock: systemClock,
    random: Math.random,
    ...part,
  });
  return { probe, engine, log };
}
