import { CallCredentials, ChannelCredentials } from "@grpc/grpc-js";
import { connect as connectSocket, isIP, type Socket } from "node:net";
import tls from "node:tls";
import { type ClientTlsFiles, readClientTls, type TlsFileLog } from "../base/client_tls.ts";
import type { Clock } from "../base/clock.ts";
import { explainedTlsError } from "../base/tls_problem.ts";

const NAMES = {
  cert: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
  key: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
  ca: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
};

interface XdsTlsReading {
  readonly context: tls.SecureContext;
  readonly warnings: readonly string[];
}

/** Reads the files anew for each connection. The authorities replace those of the system. */
export async function readXdsTls(files: ClientTlsFiles, log: TlsFileLog): Promise<XdsTlsReading> {
  if ((files.cert === undefined) !== (files.key === undefined)) {
    const what = `${NAMES.cert} and ${NAMES.key}`;
    throw new Error(`Cannot use ${what}: one of them is not set; expected both or none`);
  }
  const { pair, authorities } = await readClientTls(files, NAMES, log);
  const context = tls.createSecureContext({
    minVersion: "TLSv1.2",
    ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
    ...(authorities === undefined ? {} : { ca: [...authorities] }),
  });
  return { context, warnings: pair?.warnings ?? [] };
}

interface XdsCredentialsOptions {
  /** Plain text when absent. */
  readonly context?: tls.SecureContext | undefined;
  /** The name that the server's certificate must have. */
  readonly name: string;
  /** Called with each socket: one that is still connecting when its channel is closed would stay open. */
  readonly onSocket: (socket: Socket) => void;
  readonly clock: Clock;
}

type CreateConnector = ChannelCredentials["_createSecureConnector"];

/** Opens the connections of a channel: those of the library cannot be closed, nor use TLS to an IP address. */
export class XdsCredentials extends ChannelCredentials {
  readonly #options: XdsCredentialsOptions;

  constructor(options: XdsCredentialsOptions) {
    super();
    this.#options = options;
  }

  _isSecure(): boolean {
    return this.#options.context !== undefined;
  }

  _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  _createSecureConnector(...args: Parameters<CreateConnector>): ReturnType<CreateConnector> {
    const callCredentials = args[2] ?? CallCredentials.createEmpty();
    const { context, name, onSocket, clock } = this.#options;
    return {
      async connect(socket) {
        onSocket(socket);
        if (context === undefined) return { socket, secure: false };
        return { socket: await handshake(socket, { context, name, clock, onSocket }), secure: true };
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials,
      destroy() {},
    };
  }
}

async function handshake(
  socket: Socket,
  { context: secureContext, name, clock, onSocket }: XdsCredentialsOptions,
): Promise<tls.TLSSocket> {
  const options = {
    secureContext,
    ALPNProtocols: ["h2"],
    host: name,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    checkServerIdentity: (_: string, certificate: tls.PeerCertificate) =>
      tls.checkServerIdentity(name, certificate),
  };
  const { remoteAddress: host, remotePort: port } = socket;
  const connect = () => {
    const plain = connectSocket({ host: host ?? name, port: port ?? 0 });
    onSocket(plain);
    return tls.connect({ ...options, socket: plain, rejectUnauthorized: false });
  };
  const secured = tls.connect({ ...options, socket, rejectUnauthorized: true });
  return await handshakeOf(secured).catch(async (error) => {
    throw port === undefined ? error : await explainedTlsError(error, { connect, clock });
  });
}

function handshakeOf(secured: tls.TLSSocket): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    // This listener stays: a socket may fail more than once.
    secured.on("error", reject);
    secured.once("close", () => reject(new Error("it closed the connection in the TLS handshake")));
    secured.once("secureConnect", () => {
      if (secured.alpnProtocol === "h2") resolve(secured);
      else reject(new Error("it does not speak HTTP/2 over TLS"));
    });
  });
}
