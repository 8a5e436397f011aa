import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Buffer } from "node:buffer";
import { RATE_LIMIT_PATH } from "./rate_limit_message.ts";

/** The method of the bench as grpc-js wants it: bytes pass through, nothing is decoded. */
const SHOULD_RATE_LIMIT = {
  path: RATE_LIMIT_PATH,
  requestStream: false,
  responseStream: false,
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer) => bytes,
  responseDeserialize: (bytes: Buffer) => bytes,
} as const;

/** Starts a bare grpc-js server on a free port of the loopback that answers every call with its own bytes. */
export function startEchoServer(onListening: (port: number) => void): void {
  const server = new Server();
  server.addService({ ShouldRateLimit: SHOULD_RATE_LIMIT }, {
    ShouldRateLimit: (
      call: { readonly request: Buffer },
      answer: (error: Error | null, bytes: Buffer) => void,
    ) => answer(null, call.request),
  });
  server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
    if (error !== null) throw error;
    onListening(port);
  });
}

if (import.meta.main) {
  startEchoServer((port) => {
    Deno.stdout.writeSync(new TextEncoder().encode(`Listening for gRPC on '127.0.0.1:${port}'\n`));
  });
}
