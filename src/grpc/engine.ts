import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { TlsPair } from "../base/tls_files.ts";
import type { GrpcService } from "./grpc_service.ts";
import type { Listener, ListenOptions, ListenTarget } from "./listener.ts";
import type { ListenTls } from "./tls_server.ts";

/** What carries gRPC: a running server. */
export interface GrpcEngine {
  /** `host:port` with the real port, or `unix:path`. */
  readonly address: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** What accepts the connections. */
  readonly acceptor: Listener["acceptor"];
  /**
   * Takes no further connection, tells the peers of the open ones to go (GOAWAY), lets running calls
   * end, and closes what is left after `graceMs` milliseconds. Calling it again waits for the first call.
   */
  close(graceMs: number): Promise<void>;
  /** Shows another pair to those who connect from now on; open connections stay as they are. */
  renewTls(pair: TlsPair): void;
}

/** What an engine is started with. */
export interface GrpcEngineOptions {
  readonly services: readonly GrpcService[];
  readonly target: ListenTarget;
  /** How connections are accepted; without a limit and a report when absent. */
  readonly listen?: Pick<ListenOptions, "name" | "onState" | "maxConnections" | "isShared"> | undefined;
  /** Absent for plain text. */
  readonly tls?: ListenTls | undefined;
  /** A connection is asked to go after this time, give or take a tenth at random; 0 means never. */
  readonly maxConnectionAgeMs: number;
  /** It is closed this long after it was asked to go. */
  readonly maxConnectionAgeGraceMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

const UNLIMITED = { name: "grpc", onState: () => {}, maxConnections: Infinity } as const;

/** How the listener of an engine is opened. */
export function listenOptions({ tls, listen = UNLIMITED, clock, logger }: GrpcEngineOptions): ListenOptions {
  return { ...listen, tls, clock, logger };
}
