import {
  type Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
} from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { SocketRelay } from "./socket_relay.ts";

/** A response of a peer: the bytes of a message, or a refusal. Undefined never responds. */
export type PeerAnswer = Uint8Array | PeerRefusal | undefined;

/** A refusal of a call, with its trailers. */
interface PeerRefusal {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata;
}

/** Options of a gRPC peer. */
export interface GrpcPeerOptions {
  /** `host:port` or `unix:/path`; a free port of 127.0.0.1 when absent. */
  readonly listen?: string;
  /** Plain text when absent. */
  readonly credentials?: ServerCredentials;
  answer(request: Uint8Array, metadata: Metadata): PeerAnswer;
}

/** Starts a gRPC server of the test with one unary method; its path is `/service/method`. */
export async function startGrpcPeer(path: string, options: GrpcPeerOptions): Promise<GrpcPeer> {
  const server = new Server();
  const bytes = (message: Buffer) => message;
  const method = {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  };
  server.addService({ method }, {
    method(call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
      const answer = options.answer(call.request, call.metadata);
      if (answer instanceof Uint8Array) done(null, Buffer.from(answer));
      else if (answer !== undefined) done(answer);
    },
  });
  const socket = /^unix:(.*)/.exec(options.listen ?? "")?.[1];
  const listen = socket === undefined && options.listen !== undefined ? options.listen : "127.0.0.1:0";
  const credentials = options.credentials ?? ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, credentials, (error, bound) => error === null ? resolve(bound) : reject(error));
  });
  return new GrpcPeer(
    server,
    port,
    socket === undefined ? undefined : SocketRelay.fromUnixSocket(socket, port),
  );
}

/** A running peer; ended with everything on it at the end of a `using`. */
export class GrpcPeer implements Disposable {
  /** Its TCP port. */
  readonly port: number;
  readonly #server: Server;
  readonly #relay: SocketRelay | undefined;

  constructor(server: Server, port: number, relay: SocketRelay | undefined) {
    this.#server = server;
    this.port = port;
    this.#relay = relay;
  }

  /** Ends the server and every call on it. */
  [Symbol.dispose](): void {
    this.#relay?.[Symbol.dispose]();
    this.#server.forceShutdown();
  }
}
