import { AcceptGuard, type AcceptGuardOptions } from "../base/accept_guard.ts";
import { errorText } from "../base/error_text.ts";
import { hostPort } from "../base/host_port.ts";
import { ListenerEnd } from "./listener_end.ts";
import { randomRequestId } from "./request_id.ts";
import type { HttpHandler } from "./router.ts";
import { failedResponse, RunningRequests } from "./running_requests.ts";

/** Where to listen, and who learns when accepting fails. */
export interface ListenHttpOptions extends AcceptGuardOptions {
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the port too; they may when absent. */
  readonly isShared?: boolean;
}

/** A port that is being served. */
export interface HttpListener {
  /** The bound address. */
  readonly hostname: string;
  /** The bound port, also when 0 was asked for. */
  readonly port: number;
  /** How often accepting or reopening has failed. */
  readonly failures: number;
  /** Whether no connection is accepted now. */
  readonly isFailing: boolean;
  /**
   * Serves on, and says with each answer that it is the last of its connection: clients leave before `close`,
   * which drops requests that have come and were not begun to be read.
   */
  drain(): void;
  /**
   * Stops accepting at once and lets running requests end within `graceMs`; those still running then are
   * answered with 503. With 0 every connection is cut at once. Calling it again waits for the first call,
   * whose grace it can shorten and never prolong.
   */
  close(graceMs: number): Promise<void>;
}

/**
 * Serves `handler` by `Deno.serve`. One accept that fails ends such a server; then the port is opened again. Throws
 * when it cannot listen.
 */
export function listenHttp(handler: HttpHandler, options: ListenHttpOptions): HttpListener {
  const served = new ServedPort(handler, options);
  const { hostname, port } = served;
  return {
    hostname,
    port,
    get failures() {
      return served.guard.failures;
    },
    get isFailing() {
      return served.guard.isFailing;
    },
    drain: () => served.running.drain(),
    close: (graceMs) => served.end.within(graceMs),
  };
}

/** A server of the runtime, and how it is cut. */
interface RunningServer {
  readonly server: Deno.HttpServer<Deno.NetAddr>;
  /** Cuts every connection; must not be used once the server shuts down: that ends the process. */
  readonly cut: AbortController;
}

/** A port whose server is replaced when it ends. */
class ServedPort {
  readonly hostname: string;
  readonly port: number;
  readonly running: RunningRequests;
  readonly end: ListenerEnd;
  readonly #options: ListenHttpOptions;
  readonly guard: AcceptGuard;
  /** Absent between the end of a server and its replacement. */
  #current: RunningServer | undefined;

  constructor(handler: HttpHandler, options: ListenHttpOptions) {
    this.#options = options;
    this.running = new RunningRequests(handler, options.logger);
    const first = this.#current = this.#open(options.port);
    const { hostname, port } = first.server.addr;
    this.hostname = hostname;
    this.port = port;
    this.guard = new AcceptGuard(options);
    this.end = new ListenerEnd(this.running, {
      shutDown: async () => {
        this.guard.close();
        await this.#current?.server.shutdown();
      },
      cut: async () => {
        this.guard.close();
        this.#current?.cut.abort();
        await this.#current?.server.finished;
      },
      abandon: () => {
        this.#current?.server.unref();
        options.logger.warning("HTTP connections left open at the end of the grace", { hostname, port });
      },
    }, options.clock);
    void this.guard.retry(() => this.#serve());
  }

  /** Settles when the port is closed; throws when its server ends by itself. */
  async #serve(): Promise<void> {
    const { server } = this.#current ??= this.#open(this.port);
    try {
      await server.finished;
    } catch (error) {
      this.#current = undefined;
      // Its connections live on otherwise, those included that took the last file descriptors.
      server.shutdown().catch(() => {});
      throw error;
    }
  }

  #open(port: number): RunningServer {
    const { hostname, isShared: reusePort = true, logger } = this.#options;
    const cut = new AbortController();
    try {
      const server = Deno.serve({
        ...{ hostname, port, reusePort, signal: cut.signal, onListen: () => {} },
        onError: (error) => failedResponse(error, randomRequestId(), logger),
      }, (request, { remoteAddr }) => this.running.answer(request, remoteAddr.hostname));
      return { server, cut };
    } catch (cause) {
      throw new Error(`Cannot listen on "${hostPort({ host: hostname, port })}": ${errorText(cause)}`, {
        cause,
      });
    }
  }
}
