import { dialAddressOf } from "../../src/base/host_port.ts";
import { GrpcConnection } from "../../src/grpc/client/grpc_connection.ts";
import { GrpcError } from "../../src/grpc/grpc_service.ts";
import { SHOULD_RATE_LIMIT } from "./grpc_client.ts";

/** The outcome of a call: a response, a server that had not begun it, or anything else. */
type CallOutcome =
  | { readonly kind: "answer"; readonly body: Uint8Array }
  | { readonly kind: "refused" }
  | { readonly kind: "broken"; readonly why: string };

const CONNECT_MS = 30_000;
/** The errors of calls that the server never began, by its GOAWAY or a reset. */
const REFUSED = /^the server (?:closed the connection with NO_ERROR|reset the call with REFUSED_STREAM)/;

/**
 * A connection of a client that does as RFC 9113 says when the server asks it to go: it sends nothing
 * more after the first GOAWAY, and knows from the last one which of its calls the server never began.
 */
export class RestartConnection {
  readonly #connection: GrpcConnection;

  /** Connects to `host:port` or `unix:path`; absent when the connection ends before the server said a word. */
  static async open(address: string): Promise<RestartConnection | undefined> {
    const target = { address: dialAddressOf(address) };
    const connection = await GrpcConnection.open(target, { connectTimeoutMs: CONNECT_MS }).catch(() =>
      undefined
    );
    return connection === undefined ? undefined : new RestartConnection(connection);
  }

  private constructor(connection: GrpcConnection) {
    this.#connection = connection;
  }

  /** Returns whether calls may be sent: the server has not asked the client to go. */
  get usable(): boolean {
    return this.#connection.isOpen;
  }

  /** Asks for a decision. */
  async call(request: Uint8Array): Promise<CallOutcome> {
    try {
      return { kind: "answer", body: await this.#connection.unary(SHOULD_RATE_LIMIT, request) };
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      if (REFUSED.test(error.message)) return { kind: "refused" };
      return { kind: "broken", why: `${error.code} ${error.message}` };
    }
  }

  /** Ends the connection, which has no calls any more. */
  close(): void {
    void this.#connection.close();
  }
}
