import { Server, ServerCredentials } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { parseArgs } from "node:util";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";

/** The method of the bench as grpc-js requires it: bytes pass through, nothing is decoded. */
const SHOULD_RATE_LIMIT = {
  path: RATE_LIMIT_PATH,
  requestStream: false,
  responseStream: false,
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer) => bytes,
  responseDeserialize: (bytes: Buffer) => bytes,
} as const;

/** A key and a certificate that is its own authority, both as PEM. */
interface EchoTls {
  readonly key: string;
  readonly cert: string;
}

/** Starts a bare grpc-js server on a free port of the loopback that answers every call with its own bytes. */
function startEchoServer(onListening: (port: number) => void, tls?: EchoTls): void {
  const server = new Server();
  server.addService({ ShouldRateLimit: SHOULD_RATE_LIMIT }, {
    ShouldRateLimit: (
      call: { readonly request: Buffer },
      answer: (error: Error | null, bytes: Buffer) => void,
    ) => answer(null, call.request),
  });
  server.bindAsync("127.0.0.1:0", credentialsOf(tls), (error, port) => {
    if (error !== null) throw error;
    onListening(port);
  });
}

function credentialsOf(tls: EchoTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const [key, cert] = [Buffer.from(tls.key), Buffer.from(tls.cert)];
  // Without an authority all those of the system would be sent, which makes the handshake too large.
  return ServerCredentials.createSsl(cert, [{ private_key: key, cert_chain: cert }], false);
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { key: { type: "string" }, cert: { type: "string" } } });
  const tls = values.key === undefined || values.cert === undefined
    ? undefined
    : { key: await Deno.readTextFile(values.key), cert: await Deno.readTextFile(values.cert) };
  startEchoServer((port) => {
    Deno.stdout.writeSync(new TextEncoder().encode(`Listening for gRPC on '127.0.0.1:${port}'\n`));
  }, tls);
}
