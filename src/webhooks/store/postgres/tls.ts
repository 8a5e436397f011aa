import { Buffer } from "node:buffer";
import { isIP, Socket } from "node:net";
import tls from "node:tls";
import { readClientTls, type TlsFileLog } from "../../../net/client_tls.ts";
import type { Clock } from "../../../base/clock.ts";
import type { PostgresAddress, PostgresAddressFields, PostgresHost } from "../../../base/postgres_address.ts";
import { explainedTlsError } from "../../../net/tls_problem.ts";

/** Asks a server for TLS; it answers with one byte, `S` where it agrees. */
const SSL_REQUEST = Buffer.of(0, 0, 0, 8, 4, 210, 22, 47);
const AGREED = "S";

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
  /** How long the look may take. */
  readonly ms: number;
  readonly signal: AbortSignal | undefined;
  readonly logger: TlsFileLog | undefined;
}

/** The error of a connection, with the cause where the certificate of the server was rejected. Never rejects. */
export async function explainedHandshake(
  error: unknown,
  { address, host: { host, port }, clock, ms, signal, logger }: HandshakeLook,
): Promise<unknown> {
  const socket = new Socket();
  const end = () => void socket.destroy();
  const cancel = clock.after(ms, end);
  signal?.addEventListener("abort", end, { once: true });
  const connect = async () => {
    signal?.throwIfAborted();
    await agreed(socket.connect({ host, port }));
    const options = await readTls(address.fields, logger);
    const name = isIP(host) === 0 ? { servername: host } : {};
    return tls.connect({ ...options, ...name, socket, rejectUnauthorized: false });
  };
  try {
    return await explainedTlsError(error, { connect, clock });
  } finally {
    cancel();
    signal?.removeEventListener("abort", end);
    end();
  }
}

/** Settles when the server agrees to begin a handshake. */
function agreed(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    // It stays: a socket may fail more than once.
    socket.on("error", reject);
    socket.once("close", () => reject(new Error("closed")));
    socket.once("connect", () => socket.write(SSL_REQUEST));
    socket.once("data", (bytes) => {
      if (bytes.toString() === AGREED) resolve();
      else reject(new Error("no TLS"));
    });
  });
}
