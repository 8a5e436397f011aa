import { ConnectionPool } from "./connection_pool.ts";
import { type AnswerListener, type ConnectionRequest, GuardedConnection } from "./connection.ts";
import { Dialler, type Dialling, type DialOptions, proxyCredentials } from "./dial.ts";
import { answerError, SendError } from "./send_error.ts";
import { wireBytes, type WireOptions, type WireRequest } from "./wire_request.ts";

/** How requests are sent. */
export interface GuardedClientOptions extends DialOptions {
  /** Whether connections are used again. */
  readonly isReusing?: boolean | undefined;
}

/** A request on its way. */
export interface Exchange {
  /** Lets the server wait with its body, from the head on. */
  pause(): void;
  resume(): void;
  /** Gives it up with its connection; its listener hears nothing more. */
  cancel(): void;
}

/**
 * Sends requests of HTTP/1.1 to addresses that were checked, each exactly once: one whose connection breaks may have
 * been received, so whether to send it again is for others to say. It follows no redirect and obeys no variable of the
 * environment. What its listeners hear of went wrong as a `SendError`.
 */
export class GuardedClient {
  readonly #dialler: Dialler;
  readonly #pool: ConnectionPool<GuardedConnection>;
  readonly #options: GuardedClientOptions;
  readonly #wire: WireOptions;
  #isClosed = false;

  constructor(options: GuardedClientOptions) {
    const { proxy, isReusing = false, clock } = options;
    if (proxy !== undefined && proxy.protocol !== "http:") {
      throw new RangeError(
        `Cannot use WEBHOOK_PROXY with the scheme "${proxy.protocol}": http: would be right`,
      );
    }
    this.#options = options;
    this.#dialler = new Dialler(options);
    this.#pool = new ConnectionPool(clock);
    const credentials = proxy === undefined ? undefined : proxyCredentials(proxy);
    this.#wire = { isReusing, isProxied: proxy !== undefined, credentials };
  }

  /** Sends a request; throws a `SendError` for one that cannot be. The listener is not called before it returns. */
  begin(request: WireRequest, listener: AnswerListener): Exchange {
    const bytes = wireBytes(request, this.#wire);
    const { key, dial } = request.target;
    const exchange = new RunningExchange({ bytes, isHeadOnly: request.method === "HEAD" }, listener);
    const known = this.#pool.take(key);
    if (known === undefined) this.#dial(exchange, key, dial);
    else exchange.run(known);
    return exchange;
  }

  /** Ends its connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pool.close();
    await this.#dialler.close();
  }

  #dial(exchange: RunningExchange, key: string, target: WireRequest["target"]["dial"]): void {
    const { clock, isReusing = false } = this.#options;
    const dialling = this.#dialler.begin();
    exchange.await(dialling);
    this.#dialler.dial(target, dialling).then((socket) => {
      const connection = new GuardedConnection(socket, {
        madeAt: clock.elapsed(),
        onFree: (free, serverIdleMs) => {
          free.resume();
          if (isReusing && !this.#isClosed) this.#pool.keep(key, free, serverIdleMs);
          else free.destroy();
        },
        onClose: (closed) => this.#pool.forget(key, closed),
      });
      exchange.run(connection);
    }, (error) => exchange.onError(answerError(error)));
  }
}

/** Stands between a connection and a listener that may have lost interest. */
class RunningExchange implements Exchange, AnswerListener {
  readonly #request: ConnectionRequest;
  #listener: AnswerListener | undefined;
  #dialling: Dialling | undefined;
  #connection: GuardedConnection | undefined;

  constructor(request: ConnectionRequest, listener: AnswerListener) {
    this.#request = request;
    this.#listener = listener;
  }

  /** Its connection is still to come. */
  await(dialling: Dialling): void {
    this.#dialling = dialling;
  }

  /** Sends it, unless it was given up meanwhile. */
  run(connection: GuardedConnection): void {
    this.#dialling = undefined;
    if (this.#listener === undefined) return connection.destroy();
    this.#connection = connection;
    connection.begin(this.#request, this);
  }

  pause(): void {
    this.#connection?.pause();
  }

  resume(): void {
    this.#connection?.resume();
  }

  cancel(): void {
    this.#listener = undefined;
    this.#dialling?.giveUp();
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  onHead(head: Parameters<AnswerListener["onHead"]>[0]): void {
    if (head.status >= 200 && head.status <= 599) return this.#listener?.onHead(head);
    const listener = this.#listener;
    this.cancel();
    listener?.onError(noFinalStatus(head.status));
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    this.#listener?.onBody(piece);
  }

  onEnd(): void {
    this.#over()?.onEnd();
  }

  onError(error: SendError): void {
    this.#over()?.onError(error);
  }

  /** From here on its connection is somebody else's. */
  #over(): AnswerListener | undefined {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#connection = undefined;
    return listener;
  }
}

function noFinalStatus(status: number): SendError {
  return new SendError("status", `the receiver answered ${status}, which is no final answer`, { status });
}
