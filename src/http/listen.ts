import { AcceptGuard, type AcceptGuardOptions } from "../base/accept_guard.ts";
import { errorText } from "../base/error_text.ts";
import { hostPort } from "../base/host_port.ts";
import { ListenerEnd } from "./listener_end.ts";
import { type HttpHandler, randomRequestId } from "./router.ts";
import { failedResponse, RunningRequests } from "./running_requests.ts";

/** Where to listen. */
export interface ListenHttpOptions extends AcceptGuardOptions {
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the port too (default true). */
  readonly isShared?: boolean;
}

/** A port that is being served. */
export interface HttpListener {
  readonly hostname: string;
  /** The bound port. */
  readonly port: number;
  /** How often accepting has failed, and whether it fails now. */
  readonly accepting: Pick<AcceptGuard, "failures" | "isFailing">;
  /** Makes each response the last of its connection: clients leave before `close`, which drops unread requests. */
  drain(): void;
  /**
   * Stops accepting and lets running requests end within `graceMs`; later ones get 503. With 0 every connection is closed
   * immediately. Another call waits for the first, and can shorten its grace.
   */
  close(graceMs: number): Promise<void>;
}

/**
 * Serves `handler` by `Deno.serve`, which ends at the first accept that fails; then the port is reopened. Throws when it
 * cannot listen.
 */
export function listenHttp(handler: HttpHandler, options: ListenHttpOptions): HttpListener {
  return new ServedPort(handler, options);
}

/** A server of the runtime. */
interface RunningServer {
  readonly server: Deno.HttpServer<Deno.NetAddr>;
  /** Closes every connection. Never aborted once the server shuts down: that would end the process. */
  readonly cut: AbortController;
}

/** A port whose server is replaced when it ends. */
class ServedPort implements HttpListener {
  readonly hostname: string;
  readonly port: number;
  readonly accepting: AcceptGuard;
  readonly #running: RunningRequests;
  readonly #end: ListenerEnd;
  readonly #options: ListenHttpOptions;
  /** Absent between the end of a server and its replacement. */
  #current: RunningServer | undefined;

  constructor(handler: HttpHandler, options: ListenHttpOptions) {
    this.#options = options;
    this.#running = new RunningRequests(handler, options.logger);
    const first = this.#current = this.#open(options.port);
    const { hostname, port } = first.server.addr;
    this.hostname = hostname;
    this.port = port;
    this.accepting = new AcceptGuard(options);
    this.#end = new ListenerEnd(this.#running, {
      shutDown: async () => {
        this.accepting.close();
        await this.#current?.server.shutdown();
      },
      cut: async () => {
        this.accepting.close();
        this.#current?.cut.abort();
        await this.#current?.server.finished;
      },
      abandon: () => {
        this.#current?.server.unref();
        options.logger.warning("HTTP connections left open after the grace", { hostname, port });
      },
    }, options.clock);
    void this.accepting.retry(() => this.#serve());
  }

  drain(): void {
    this.#running.drain();
  }

  close(graceMs: number): Promise<void> {
    return this.#end.within(graceMs);
  }

  /** Settles when the port is closed; throws when its server ends by itself. */
  async #serve(): Promise<void> {
    const { server } = this.#current ??= this.#open(this.port);
    try {
      await server.finished;
    } catch (error) {
      this.#current = undefined;
      // Closes its connections, which may hold the last file descriptors.
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
      }, (request, { remoteAddr }) => this.#running.answer(request, remoteAddr.hostname));
      return { server, cut };
    } catch (cause) {
      throw new Error(`Cannot listen on "${hostPort({ host: hostname, port })}": ${errorText(cause)}`, {
        cause,
      });
    }
  }
}
