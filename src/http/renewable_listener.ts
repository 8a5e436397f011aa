import { errorText } from "../base/error_text.ts";
import { type HttpListener, type HttpTls, listenHttp, type ListenHttpOptions } from "./listen.ts";
import type { HttpHandler } from "./router.ts";

/**
 * How long clients of a connection get to leave with their next answer. Ending at once would reset every
 * HTTP/1.1 connection whose next request is on its way.
 */
const LEAVE_MS = 2_000;
/** How long requests that were taken under the former certificate may still run. */
const DRAIN_MS = 30_000;

/** An HTTPS port that takes a new certificate while it serves. */
export class RenewableListener implements HttpListener {
  readonly hostname: string;
  readonly port: number;
  readonly #handler: HttpHandler;
  readonly #options: ListenHttpOptions;
  /** Those that end, and what cancels the wait before. */
  readonly #draining = new Map<HttpListener, () => void>();
  #current: HttpListener;
  #isDraining = false;
  #closed = false;

  /** Listens. Throws when it cannot, or the pair cannot be served. */
  constructor(handler: HttpHandler, options: ListenHttpOptions & { readonly tls: HttpTls }) {
    this.#current = listenHttp(handler, options);
    this.#handler = handler;
    this.hostname = this.#current.hostname;
    this.port = this.#current.port;
    // A port that was chosen for us must be asked for by its number from now on.
    this.#options = { ...options, port: this.port };
  }

  /**
   * Serves new connections with another pair. The runtime cannot swap the certificate of a port, so a second
   * listener opens on the same port. For two seconds new connections meet either certificate, and the first
   * listener's clients leave with their next answer; then it ends: its running requests are answered, its
   * connections without one are closed. Throws when the pair cannot be served; then the former one stays.
   */
  renew(tls: HttpTls): void {
    if (this.#closed) return;
    const next = listenHttp(this.#handler, { ...this.#options, tls });
    const former = this.#current;
    this.#current = next;
    if (this.#isDraining) next.drain();
    former.drain();
    this.#draining.set(former, this.#options.clock.after(LEAVE_MS, () => this.#end(former)));
  }

  #end(former: HttpListener): void {
    former.close(DRAIN_MS)
      .catch((error: unknown) =>
        this.#options.logger.warning("Cannot end the former HTTPS listener", { reason: errorText(error) })
      )
      .finally(() => this.#draining.delete(former));
  }

  drain(): void {
    this.#isDraining = true;
    this.#current.drain();
  }

  /** Ends the current listener and those that still drain, as `HttpListener` says. */
  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    for (const cancel of this.#draining.values()) cancel();
    const listeners = [this.#current, ...this.#draining.keys()];
    await Promise.all(listeners.map((listener) => listener.close(graceMs)));
  }
}
