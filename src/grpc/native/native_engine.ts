import { type GrpcEngine, type GrpcEngineOptions, listenOptions } from "../engine.ts";
import type { GrpcMethod } from "../grpc_service.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { type AcceptedSocket, listen } from "../listener.ts";
import { longHeadersLog } from "../long_headers_log.ts";
import { Carrier } from "./carrier.ts";
import { EndedCalls } from "./ended_calls.ts";
import type { OtherProtocol } from "./frames.ts";

/** Intervals of the checks of connections: for deadlines of calls, and for all other timeouts. */
const DEADLINE_TICK_MS = 10;
const SLOW_TICK_MS = 1_000;
/** Time between two log lines about a client that speaks another protocol: it retries again and again. */
const OTHER_PROTOCOL_LOG_MS = 10_000;
const REFUSED: Readonly<Record<OtherProtocol, string>> = {
  "HTTP/1.1": "gRPC client refused: it uses HTTP/1.1, but gRPC requires HTTP/2; " +
    "in Envoy, set http2_protocol_options of the cluster",
  "TLS": "gRPC client refused: it uses TLS, but this port serves plain text; " +
    "set GRPC_SERVER_USE_TLS=true or disable TLS in the client",
};

/** Serves gRPC by our own HTTP/2 on plain sockets, unix sockets and TLS. */
export async function startNative(options: GrpcEngineOptions): Promise<GrpcEngine> {
  const engine = new NativeEngine(options);
  const accept = (socket: AcceptedSocket) => engine.accept(socket);
  const listener = await listen(options.target, accept, listenOptions(options)).catch(
    async (error: unknown) => {
      await engine.close(0);
      throw error;
    },
  );
  let closed: Promise<void> | undefined;
  const close = (graceMs: number) => engine.close(graceMs, listener.close());
  return {
    address: listener.address,
    acceptor: listener.acceptor,
    get connections() {
      return engine.connections;
    },
    close: (graceMs) => closed ??= close(graceMs),
  };
}

class NativeEngine {
  readonly #options: GrpcEngineOptions;
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  readonly #carriers = new Set<Carrier>();
  readonly #ended: EndedCalls;
  readonly #refusals: ThrottledLog;
  readonly #onLongHeaders: ReturnType<typeof longHeadersLog>;
  readonly #empty = Promise.withResolvers<void>();
  #closing = false;
  #cancelSlowTick: () => void;
  #cancelDeadlineTick: (() => void) | undefined;

  constructor(options: GrpcEngineOptions) {
    this.#options = options;
    this.#methods = methodsByPath(options);
    this.#ended = new EndedCalls(() => options.clock.elapsed());
    this.#refusals = new ThrottledLog(options.logger, {
      clock: options.clock,
      intervalMs: OTHER_PROTOCOL_LOG_MS,
    });
    this.#onLongHeaders = longHeadersLog(options);
    this.#cancelSlowTick = this.#scheduleSlowTick();
  }

  get connections(): number {
    return this.#carriers.size;
  }

  accept(socket: AcceptedSocket): void {
    const { clock, random, logger, maxConnectionAgeMs, maxConnectionAgeGraceMs } = this.#options;
    // Up to a tenth more or less, so that connections opened together do not close together.
    const age = maxConnectionAgeMs === 0 ? Infinity : maxConnectionAgeMs * (0.9 + 0.2 * random());
    const carrier = new Carrier(socket, {
      methods: this.#methods,
      now: () => clock.elapsed(),
      maxAgeMs: age,
      graceMs: maxConnectionAgeGraceMs,
      onFault: (method, error) =>
        logger.error("Cannot answer a gRPC call: unexpected error", { method, error }),
      onOtherProtocol: (protocol) =>
        this.#refusals.warning(protocol, REFUSED[protocol], { peer: socket.remoteAddress }),
      onLongHeaders: (bytes) => this.#onLongHeaders(bytes, socket.remoteAddress),
      onDeadline: () => this.#scheduleDeadlineTick(),
      onClosed: () => this.#forget(carrier),
      ended: this.#ended,
    });
    this.#carriers.add(carrier);
    if (this.#closing) carrier.drain();
  }

  /**
   * Drains all connections once `accepted` has settled, and closes them after the grace. Until then the port may still
   * take a connection, which the platform resets when it closes the port: a peer that was asked to go away would lose
   * the calls that it sends on its next connection.
   */
  async close(graceMs: number, accepted: Promise<void> = Promise.resolve()): Promise<void> {
    const deadline = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(graceMs, deadline.resolve);
    await Promise.race([accepted, deadline.promise]);
    this.#closing = true;
    for (const carrier of [...this.#carriers]) carrier.drain();
    if (this.#carriers.size > 0) await Promise.race([this.#empty.promise, deadline.promise]);
    cancel();
    const left = [...this.#carriers];
    for (const carrier of left) carrier.destroy();
    if (left.length > 0) await this.#empty.promise;
    this.#cancelSlowTick();
    this.#cancelDeadlineTick?.();
  }

  #forget(carrier: Carrier): void {
    this.#carriers.delete(carrier);
    if (this.#closing && this.#carriers.size === 0) this.#empty.resolve();
  }

  #scheduleSlowTick(): () => void {
    const { clock } = this.#options;
    return clock.after(SLOW_TICK_MS, () => {
      const now = clock.elapsed();
      for (const carrier of [...this.#carriers]) carrier.tick(now);
      this.#cancelSlowTick = this.#scheduleSlowTick();
    });
  }

  /** One timer for all calls with a deadline: a timer for each would cost more than the call. */
  #scheduleDeadlineTick(): void {
    const { clock } = this.#options;
    this.#cancelDeadlineTick ??= clock.after(DEADLINE_TICK_MS, () => {
      this.#cancelDeadlineTick = undefined;
      const now = clock.elapsed();
      let waiting = false;
      for (const carrier of [...this.#carriers]) waiting = carrier.expire(now) || waiting;
      if (waiting) this.#scheduleDeadlineTick();
    });
  }
}

function methodsByPath({ services }: GrpcEngineOptions): Map<string, GrpcMethod> {
  const methods = new Map<string, GrpcMethod>();
  for (const service of services) {
    for (const method of service.methods) methods.set(`/${service.name}/${method.name}`, method);
  }
  return methods;
}
