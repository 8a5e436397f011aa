import { setImmediate } from "node:timers";
import type { AcceptGuardOptions } from "../../net/accept_guard.ts";
import { Acceptor, streamsOf } from "../../net/acceptor.ts";
import type { ConnectionStream } from "../../net/connection_stream.ts";
import { errorText } from "../../base/error_text.ts";
import { hostPort } from "../../base/host_port.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { HttpConnection } from "./http_connection.ts";
import type { HttpsLayer } from "./https_layer.ts";
import { ListenerEnd } from "./listener_end.ts";
import { type Refusal, REFUSALS } from "./problem.ts";
import type { HttpHandler } from "./router.ts";
import { RunningRequests } from "./running_requests.ts";

/** Options of `listenHttp`. */
export interface HttpPortOptions extends AcceptGuardOptions {
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Other processes may listen on the port too; true when absent. */
  readonly isShared?: boolean;
  /** Serves HTTPS by this layer; plain HTTP when absent. */
  readonly tls?: HttpsLayer | undefined;
  /** As many as there are file descriptors when absent. */
  readonly maxConnections?: number;
}

/** Interval of checking the timeouts of connections. */
const SWEEP_MS = 1_000;

/**
 * Serves `handler` over HTTP/1.1, with a limit on connections and with timeouts for heads, idle connections and unread
 * responses. Throws when it cannot listen.
 */
export function listenHttp(handler: HttpHandler, options: HttpPortOptions): HttpPort {
  const { hostname, port, isShared: reusePort = true } = options;
  try {
    return new HttpPort(handler, Deno.listen({ hostname, port, reusePort }), options);
  } catch (cause) {
    throw new Error(`Cannot listen on "${hostPort({ host: hostname, port })}": ${errorText(cause)}`, {
      cause,
    });
  }
}

/** A port that is being served. */
export class HttpPort {
  readonly hostname: string;
  /** The bound port. */
  readonly port: number;
  readonly #options: HttpPortOptions;
  readonly #running: RunningRequests;
  readonly accepting: Acceptor<ConnectionStream>;
  readonly #log: ThrottledLog;
  /** By their streams, below TLS. */
  readonly #connections = new Map<ConnectionStream, HttpConnection>();
  readonly #allClosed = Promise.withResolvers<void>();
  readonly #end: ListenerEnd;
  #isClosing = false;
  #cancelSweep: (() => void) | undefined;

  constructor(handler: HttpHandler, listener: Deno.TcpListener, options: HttpPortOptions) {
    this.hostname = listener.addr.hostname;
    this.port = listener.addr.port;
    this.#options = options;
    this.#log = new ThrottledLog(options.logger, options);
    this.#running = new RunningRequests(handler, options.logger);
    this.accepting = new Acceptor(streamsOf(listener), (stream) => this.#admit(stream), {
      maxConnections: Infinity,
      ...options,
      isIdle: (stream) => this.#connections.get(stream)?.isIdle === true,
    });
    this.#end = new ListenerEnd(this.#running, {
      shutDown: () => this.#shutDown(),
      cut: () => this.#cut(),
      abandon: () => this.#abandon(),
    }, options.clock);
  }

  /** Makes the next response of each connection its last, so that clients see a new certificate. */
  replaceConnections(): void {
    for (const connection of this.#connections.values()) connection.drain();
  }

  /** Makes each response the last of its connection: clients leave before `close`, which drops unread requests. */
  drain(): void {
    this.#running.drain();
  }

  /**
   * Stops accepting and lets running requests end within `graceMs`; later ones get 503. With 0 every connection is closed
   * immediately. Another call waits for the first, and can shorten its grace.
   */
  close(graceMs: number): Promise<void> {
    return this.#end.within(graceMs);
  }

  #admit(stream: ConnectionStream): void {
    stream.on("error", () => {});
    stream.on("close", () => {
      this.#connections.delete(stream);
      if (this.#isClosing && this.#connections.size === 0) this.#allClosed.resolve();
    });
    this.#connections.set(stream, this.#serve(stream));
    this.#cancelSweep ??= this.#options.clock.after(SWEEP_MS, () => this.#sweep());
  }

  #serve(stream: ConnectionStream): HttpConnection {
    const { clock, logger, tls } = this.#options;
    return new HttpConnection(tls?.secure(stream) ?? stream, {
      scheme: tls === undefined ? "http" : "https",
      peer: stream.remoteAddress ?? "",
      running: this.#running,
      clock,
      onRefused: (refusal, requestId) => this.#logRefusal(refusal, requestId),
      onFailed: (error) => logger.error("HTTP request failed", { error }),
      onClose: () => void stream.destroy(),
    });
  }

  #sweep(): void {
    const { clock } = this.#options;
    const now = clock.elapsed();
    for (const connection of this.#connections.values()) connection.expire(now);
    this.#cancelSweep = this.#connections.size === 0 ? undefined : clock.after(SWEEP_MS, () => this.#sweep());
  }

  #logRefusal({ kind, reason }: Refusal, requestId: string): void {
    this.#log.warning(kind, "HTTP request refused", { kind, status: REFUSALS[kind], reason, requestId });
  }

  async #shutDown(): Promise<void> {
    await this.#stopAccepting();
    // A request that has arrived is read within a turn or two; its connection is not idle then.
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    for (const connection of this.#connections.values()) connection.closeIfIdle();
    await this.#closed();
  }

  async #cut(): Promise<void> {
    const stopped = this.#stopAccepting();
    this.#destroyAll();
    await stopped;
    // One may have been accepted just before.
    this.#destroyAll();
    await this.#closed();
  }

  #destroyAll(): void {
    for (const [stream, connection] of this.#connections) {
      connection.destroy();
      stream.destroy();
    }
  }

  #abandon(): void {
    const { hostname, port } = this;
    const connections = this.#connections.size;
    this.#options.logger.warning("HTTP connections closed after the grace", {
      hostname,
      port,
      connections,
    });
    void this.#cut();
  }

  async #stopAccepting(): Promise<void> {
    const isFirst = !this.#isClosing;
    this.#isClosing = true;
    await this.accepting.close();
    if (!isFirst) return;
    if (this.#connections.size === 0) this.#allClosed.resolve();
  }

  async #closed(): Promise<void> {
    await this.#allClosed.promise;
    this.#cancelSweep?.();
  }
}
