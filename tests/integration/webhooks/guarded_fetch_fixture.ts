import { assert, assertRejects } from "#assert";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { GuardedClientOptions } from "../../../src/net/outbound/client.ts";
import { createGuardedFetch } from "../../../src/net/outbound/fetch.ts";
import { SendError } from "../../../src/net/outbound/send_error.ts";
import type { CertificateFiles } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { LOOPBACK } from "../../harness/sender_fixture.ts";

/** A server on every address of the loopback, with what it was asked and where. */
export class Loopback implements AsyncDisposable {
  readonly seen: { readonly address: string; readonly request: IncomingMessage; readonly body: string }[] =
    [];
  readonly sockets = new Set<Socket>();
  made = 0;
  readonly #server: Server;

  private constructor(answer: RequestListener) {
    this.#server = createServer((request, response) => {
      let body = "";
      request.on("data", (piece) => body += piece);
      request.on("end", () => {
        this.seen.push({ address: request.socket.localAddress ?? "", request, body });
        answer(request, response);
      });
    });
    this.#server.on("connection", (socket: Socket) => {
      this.made++;
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
  }

  /** A server that answers so; with `ok` when nothing is given. */
  static async start(answer: RequestListener = (_, response) => response.end("ok")): Promise<Loopback> {
    const loopback = new Loopback(answer);
    await new Promise<void>((resolve) => loopback.#server.listen(0, "0.0.0.0", resolve));
    return loopback;
  }

  /** The port that it listens on. */
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Breaks its connections and stops. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** A guarded fetch that is closed at the end; no time passes for it unless it is given a clock. */
export function guarded(options: Partial<GuardedClientOptions> = {}) {
  const fetch = createGuardedFetch({
    allow: LOOPBACK,
    connectTimeoutMs: 2_000,
    clock: new FakeClock(),
    ...options,
  });
  return Object.assign(fetch, { [Symbol.asyncDispose]: () => fetch.close() });
}

/** The error of a call, which has to be a `SendError`. */
export async function failure(run: () => Promise<unknown>): Promise<SendError> {
  const error = await assertRejects(run);
  assert(error instanceof SendError, Deno.inspect(error));
  return error;
}

/** A receiver with a certificate, which answers "ok" unless it is given another answer to a body. */
export async function tlsReceiver(
  { keyFile, certFile }: CertificateFiles,
  answer: (response: ServerResponse, body: string, request: IncomingMessage) => void = (response) =>
    response.end("ok"),
): Promise<{ readonly port: number; connections: number; handshakes: number } & AsyncDisposable> {
  const [key = "", cert = ""] = await Promise.all([keyFile, certFile].map((file) => Deno.readTextFile(file)));
  const server = createTlsServer({ key, cert }, (request, response) => {
    let body = "";
    request.on("data", (piece) => body += piece);
    request.on("end", () => answer(response, body, request));
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const receiver = {
    port: (server.address() as AddressInfo).port,
    connections: 0,
    handshakes: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  server.on("connection", () => receiver.connections++);
  server.on("secureConnection", () => receiver.handshakes++);
  return receiver;
}
