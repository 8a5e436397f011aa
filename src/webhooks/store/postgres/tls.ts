import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { readClientTls, type TlsFileLog } from "../../../net/client_tls.ts";
import type { Clock } from "../../../base/clock.ts";
import type { PostgresAddress, PostgresAddressFields, PostgresHost } from "../../../base/postgres_address.ts";
import { dial } from "../../../net/dial.ts";
import { explainedTlsError } from "../../../net/tls_problem.ts";

/** Asks a server for TLS; it answers with one byte. */
const SSL_REQUEST = Buffer.of(0, 0, 0, 8, 4, 210, 22, 47);
const AGREED = "S";
const REFUSED = "N";

/** Reads the files for each connection, since certificates are renewed. */
export async function readTls(
  fields: PostgresAddressFields,
  log: TlsFileLog | undefined,
): Promise<tls.ConnectionOptions> {
  const { sslMode, rootCertFile, certFile, keyFile } = fields;
  const { pair, authorities } = await readClientTls(
    { cert: certFile, key: keyFile, ca: rootCertFile === "system" ? undefined : rootCertFile },
    { cert: "sslcert", key: "sslkey", ca: "sslrootcert" },
    log,
  );
  return {
    minVersion: "TLSv1.2",
    // With authorities, every mode verifies at least the issuer of the certificate.
    rejectUnauthorized: rootCertFile !== undefined,
    ...(authorities === undefined ? {} : { ca: [...authorities] }),
    ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
    ...(sslMode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
  };
}

interface HandshakeLook {
  readonly address: PostgresAddress;
  readonly host: PostgresHost;
  readonly clock: Clock;
  /** Longest duration of the look. */
  readonly ms: number;
  readonly signal: AbortSignal | undefined;
  readonly logger: TlsFileLog | undefined;
}

/** The error of a connection, with the cause where the certificate of the server was rejected. Never rejects. */
export async function explainedHandshake(
  error: unknown,
  { address, host: { host, port }, clock, ms, signal, logger }: HandshakeLook,
): Promise<unknown> {
  const ending = new AbortController();
  const end = () => ending.abort();
  const cancel = clock.after(ms, end);
  signal?.addEventListener("abort", end, { once: true });
  const connect = async () => {
    signal?.throwIfAborted();
    const plain = await dial({ host, port }, { clock, signal: ending.signal });
    ending.signal.addEventListener("abort", () => plain.destroy(), { once: true });
    const options = await readTls(address.fields, logger);
    return await startTls(plain, host, { ...options, rejectUnauthorized: false });
  };
  try {
    return await explainedTlsError(error, { connect, clock });
  } finally {
    cancel();
    signal?.removeEventListener("abort", end);
    end();
  }
}

/** Begins the handshake on a connection when the server agrees. */
export async function startTls(
  plain: Duplex,
  host: string,
  options: tls.ConnectionOptions,
): Promise<tls.TLSSocket> {
  await agreed(plain);
  const name = isIP(host) === 0 ? { servername: host } : {};
  return tls.connect({ ...options, ...name, host, socket: plain });
}

function agreed(socket: Duplex): Promise<void> {
  return new Promise((resolve, reject) => {
    // It stays: a socket may fail more than once.
    socket.on("error", reject);
    socket.once("close", () => reject(new Error("Connection terminated unexpectedly")));
    socket.once("data", (bytes) => {
      const answer = bytes.toString();
      if (answer === AGREED) return resolve();
      const problem = answer === REFUSED
        ? "The server does not support SSL connections"
        : "There was an error establishing an SSL connection";
      reject(new Error(problem));
    });
    socket.write(SSL_REQUEST);
  });
}
