import { CallCredentials, ChannelCredentials } from "@grpc/grpc-js";
import { isIP, type Socket } from "node:net";
import tls from "node:tls";
import { readAuthorities, readTlsPair } from "../base/tls_files.ts";

/** How a configuration server is known, and as whom to come; files are PEM. */
export interface XdsTlsFiles {
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Authorities that are trusted in place of the system's. */
  readonly ca?: string | undefined;
}

const CERT = "CONFIG_GRPC_XDS_CLIENT_TLS_CERT";
const KEY = "CONFIG_GRPC_XDS_CLIENT_TLS_KEY";
const CA = "CONFIG_GRPC_XDS_SERVER_TLS_CACERT";

/** What the files hold, with what their operator should know although it can be used. */
export interface XdsTlsReading {
  readonly context: tls.SecureContext;
  readonly warnings: readonly string[];
}

/** Reads the files as they are now: certificates that live a short time are replaced under us. */
export async function readXdsTls(files: XdsTlsFiles): Promise<XdsTlsReading> {
  const { cert, key, ca } = files;
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error(`Cannot use ${CERT} and ${KEY}: one of them is not set; expected both or none`);
  }
  const [pair, authorities] = await Promise.all([
    cert === undefined || key === undefined
      ? undefined
      : readTlsPair({ cert, key }, { cert: CERT, key: KEY }),
    ca === undefined ? undefined : readAuthorities(CA, ca),
  ]);
  const context = tls.createSecureContext({
    minVersion: "TLSv1.2",
    ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
    ...(authorities === undefined ? {} : { ca: authorities }),
  });
  return { context, warnings: pair?.warnings ?? [] };
}

/** What a connection is made with. */
export interface XdsCredentialsOptions {
  /** Plain text when absent. */
  readonly context?: tls.SecureContext | undefined;
  /** The name that the server's certificate has to carry. */
  readonly name: string;
  /** Told of each socket: a channel that is closed while it connects would leave its own open for good. */
  readonly onSocket: (socket: Socket) => void;
}

type CreateConnector = ChannelCredentials["_createSecureConnector"];

/** Makes the connections of a channel: those of the library cannot be ended, nor go to an address by TLS. */
export class XdsCredentials extends ChannelCredentials {
  readonly #options: XdsCredentialsOptions;

  constructor(options: XdsCredentialsOptions) {
    super();
    this.#options = options;
  }

  /** Whether they speak TLS. */
  _isSecure(): boolean {
    return this.#options.context !== undefined;
  }

  /** A channel with others never shares a connection with one of these. */
  _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  /** What takes a socket that is connected and makes it ready for HTTP/2. */
  _createSecureConnector(...args: Parameters<CreateConnector>): ReturnType<CreateConnector> {
    const callCredentials = args[2] ?? CallCredentials.createEmpty();
    const { context, name, onSocket } = this.#options;
    return {
      async connect(socket) {
        onSocket(socket);
        if (context === undefined) return { socket, secure: false };
        return { socket: await handshake(socket, context, name), secure: true };
      },
      waitForReady: () => Promise.resolve(),
      getCallCredentials: () => callCredentials,
      destroy() {},
    };
  }
}

function handshake(socket: Socket, secureContext: tls.SecureContext, name: string): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const secured = tls.connect({
      socket,
      secureContext,
      rejectUnauthorized: true,
      ALPNProtocols: ["h2"],
      host: name,
      ...(isIP(name) === 0 ? { servername: name } : {}),
      checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
    });
    // It stays until the end: a socket may fail more than once.
    secured.on("error", reject);
    secured.once("close", () => reject(new Error("it closed the connection in the TLS handshake")));
    secured.once("secureConnect", () => {
      if (secured.alpnProtocol === "h2") resolve(secured);
      else reject(new Error("it does not speak HTTP/2 over TLS"));
    });
  });
}
