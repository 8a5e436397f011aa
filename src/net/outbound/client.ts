import { type ConnectionRequest, GuardedConnection, type ResponseListener } from "./connection.ts";
import { ConnectionPool } from "./connection_pool.ts";
import { Dialler, type DialOptions, PendingConnection, proxyCredentials } from "./dial.ts";
import type { ResponseHead } from "./response_head.ts";
import { ACCEPTED_CODINGS } from "./response_body.ts";
import { responseError, SendError } from "./send_error.ts";
import { wireBytes, type WireOptions, type WireRequest } from "./wire_request.ts";

/** Options of a client. */
export interface GuardedClientOptions extends DialOptions {
  /** Sent with requests that do not set their own. */
  readonly userAgent?: string | undefined;
  readonly isReusing?: boolean | undefined;
}

/** A request under way. */
export interface OutboundCall {
  /** Ends it without a further call of its listener. */
  cancel(): void;
  /** Stops reading the response. */
  pause(): void;
  resume(): void;
  /** Its connection was ready, so that the request may have arrived. */
  readonly isWritten: boolean;
}

/**
 * Sends requests to checked addresses only. It follows no redirect, obeys no variable of the environment, has no cache,
 * sends every body with its length, and every request once: whether to retry one whose connection breaks is up to the
 * caller.
 */
export class GuardedClient {
  readonly #options: GuardedClientOptions;
  readonly #wire: WireOptions;
  readonly #dialler: Dialler;
  readonly #pool: ConnectionPool<GuardedConnection>;
  #isClosed = false;

  /** Throws a `RangeError` for a proxy that is not http. */
  constructor(options: GuardedClientOptions) {
    const { proxy, isReusing = false, clock } = options;
    if (proxy !== undefined && proxy.protocol !== "http:") {
      throw new RangeError(`Invalid WEBHOOK_PROXY: expected the scheme http:, got "${proxy.protocol}"`);
    }
    this.#options = options;
    this.#dialler = new Dialler(options);
    this.#pool = new ConnectionPool(clock);
    const credentials = proxy === undefined ? undefined : proxyCredentials(proxy);
    const defaults = defaultHeaders(options.userAgent);
    this.#wire = { isReusing, isProxied: proxy !== undefined, credentials, defaults };
  }

  /**
   * Sends a request. The listener is not called before this has returned, and gets final statuses only. Throws a
   * `SendError` for a request that cannot be sent.
   */
  send(request: WireRequest, listener: ResponseListener): OutboundCall {
    const isHeadOnly = request.method === "HEAD";
    const call = new Call({ bytes: wireBytes(request, this.#wire), isHeadOnly }, listener);
    const known = this.#pool.take(request.target.key);
    if (known !== undefined) call.run(known);
    else {
      const pending = this.#dialler.begin();
      call.await(pending);
      this.#connect(request.target, pending).then(
        (connection) => call.run(connection),
        (error) => call.onError(responseError(error)),
      );
    }
    return call;
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pool.close();
    await this.#dialler.close();
  }

  async #connect({ key, dial }: WireRequest["target"], pending: PendingConnection) {
    const { clock } = this.#options;
    const socket = await this.#dialler.dial(dial, pending);
    return new GuardedConnection(socket, {
      createdAt: clock.elapsed(),
      onFree: (free, serverIdleMs) => {
        free.resume();
        if (this.#wire.isReusing && !this.#isClosed) this.#pool.keep(key, free, serverIdleMs);
        else free.destroy();
      },
      onClose: (closed) => this.#pool.forget(key, closed),
    });
  }
}

/** Headers of requests that do not set their own: some servers refuse requests without. */
function defaultHeaders(userAgent: string | undefined): WireRequest["headers"] {
  const named = userAgent === undefined ? [] : [["user-agent", userAgent] as const];
  return [...named, ["accept", "*/*"], ["accept-encoding", ACCEPTED_CODINGS]];
}

/** One request, from its connection to the end of its response. */
class Call implements ResponseListener, OutboundCall {
  readonly #request: ConnectionRequest;
  readonly #listener: ResponseListener;
  isWritten = false;
  #isOver = false;
  #owned: PendingConnection | GuardedConnection | undefined;

  constructor(request: ConnectionRequest, listener: ResponseListener) {
    this.#request = request;
    this.#listener = listener;
  }

  /** Its connection is being made. */
  await(pending: PendingConnection): void {
    this.#owned = pending;
  }

  /** Sends the request, unless it was cancelled meanwhile. */
  run(connection: GuardedConnection): void {
    if (this.#isOver) return connection.destroy();
    this.#owned = connection;
    this.isWritten = true;
    connection.begin(this.#request, this);
  }

  cancel(): void {
    const owned = this.#owned;
    this.#end();
    if (owned instanceof PendingConnection) owned.cancel();
    else owned?.destroy();
  }

  pause(): void {
    if (this.#owned instanceof GuardedConnection) this.#owned.pause();
  }

  resume(): void {
    if (this.#owned instanceof GuardedConnection) this.#owned.resume();
  }

  onStatus(head: ResponseHead): void {
    const { status } = head;
    if (status >= 200 && status <= 599) return this.#listener.onStatus?.(head);
    this.cancel();
    const text = `the receiver responded with ${status}, which is not a final status`;
    this.#listener.onError(new SendError("status", text, { status }));
  }

  onHead(head: ResponseHead): void {
    if (!this.#isOver) this.#listener.onHead(head);
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    if (!this.#isOver) this.#listener.onBody(piece);
  }

  onEnd(): void {
    this.#end();
    this.#listener.onEnd();
  }

  onError(error: SendError): void {
    if (this.#isOver) return;
    this.#end();
    this.#listener.onError(error);
  }

  /** From here on its connection may serve another request. */
  #end(): void {
    this.#isOver = true;
    this.#owned = undefined;
  }
}
