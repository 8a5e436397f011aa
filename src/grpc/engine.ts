import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { GrpcService } from "./grpc_service.ts";
import type { Listener, ListenOptions, ListenTarget } from "./listener.ts";
import type { ListenerTls } from "./listener_tls.ts";

/** A running gRPC server. */
export interface GrpcEngine {
  /** `host:port` with the real port, or `unix:path`. */
  readonly address: string;
  readonly connections: number;
  readonly acceptor: Listener["acceptor"];
  /**
   * Stops accepting, sends GOAWAY on open connections, waits for running calls, and closes what is left after `graceMs`.
   * A second call waits for the first.
   */
  close(graceMs: number): Promise<void>;
}

/** Options of an engine. */
export interface GrpcEngineOptions {
  readonly services: readonly GrpcService[];
  readonly target: ListenTarget;
  /** By default without a limit and a report. */
  readonly listen?: Pick<ListenOptions, "name" | "onState" | "maxConnections" | "isShared"> | undefined;
  /** Plain text when absent. */
  readonly tls?: ListenerTls | undefined;
  /** Age at which a connection is asked to go away, plus or minus a tenth; 0 for never. */
  readonly maxConnectionAgeMs: number;
  /** Time after that until it is closed. */
  readonly maxConnectionAgeGraceMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
}

const UNLIMITED = { name: "grpc", onState: () => {}, maxConnections: Infinity } as const;

/** The listen options of an engine. */
export function listenOptions({ tls, listen = UNLIMITED, clock, logger }: GrpcEngineOptions): ListenOptions {
  return { ...listen, tls, clock, logger };
}
