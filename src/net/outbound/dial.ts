import { Buffer } from "node:buffer";
import { once as eventOf } from "node:events";
import { lookup as lookUp } from "node:dns/promises";
import { connect as connectSocket, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { withTimeout } from "../../base/wait.ts";
import { hostPort } from "../../base/host_port.ts";
import { blockedReason, type Cidrs } from "./address_ranges.ts";
import {
  connectError,
  isOutdated,
  isUntrusted,
  lookupError,
  outdatedError,
  SendError,
  tlsError,
} from "./send_error.ts";

/** All addresses of a name, those to try first in front. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** Options of connections. */
export interface DialOptions {
  /** Ranges that are open although they are blocked otherwise. */
  readonly allow: Cidrs;
  /** Of the lookup, the connection and the TLS handshake together. */
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  /** Authorities in PEM that are trusted in addition to the platform's. */
  readonly authorities?: readonly string[] | undefined;
  /** An HTTP proxy, with its user name and password; it decides which addresses may be reached. */
  readonly proxy?: URL | undefined;
  /** `http` goes only to addresses in `allow`. */
  readonly isPlainInsideOnly?: boolean | undefined;
  /** The platform's own when absent. */
  readonly lookup?: Lookup | undefined;
}

/** The side of TLS that a user sets for some connections, in PEM. */
export interface TlsIdentity {
  /** Differs for identities that differ. */
  readonly id: string;
  /** The client certificate, with its key. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  /** The only authorities that are trusted; those of the options and of the platform when absent. */
  readonly authorities?: readonly string[] | undefined;
}

/** The server that a connection leads to. */
export interface DialTarget {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  readonly identity?: TlsIdentity | undefined;
}

/** The host and port of a URL. */
export function targetOf(url: URL): DialTarget {
  const isTls = url.protocol === "https:";
  const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
  return { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port, isTls };
}

/** A connection being made, until a deadline, unless it is cancelled before. */
export class PendingConnection {
  /** By the clock's `elapsed`. */
  readonly end: number;
  readonly #options: DialOptions;
  #socket: Socket | undefined;
  #isCancelled = false;

  constructor(options: DialOptions) {
    this.#options = options;
    this.end = options.clock.elapsed() + options.connectTimeoutMs;
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#socket?.destroy();
  }

  check(): void {
    if (this.#isCancelled) throw new SendError("interrupted", "interrupted before the request was sent");
  }

  /** The socket to destroy when it fails or is cancelled. */
  follow(socket: Socket): void {
    this.#socket = socket;
  }

  /** Waits for work until the deadline; `state` begins the message of the timeout. */
  async wait<T>(work: Promise<T>, state: string, end = this.end): Promise<T> {
    const { clock, connectTimeoutMs } = this.#options;
    const late = () => new SendError("timeout", `${state} within ${connectTimeoutMs} ms`);
    try {
      return await withTimeout(work, Math.max(0, end - clock.elapsed()), clock, late);
    } catch (error) {
      this.#socket?.destroy();
      throw error;
    }
  }
}

/** Connects to checked addresses, and to no others: names are resolved here, so that what is dialled is an address. */
export class Dialler {
  readonly #options: DialOptions;
  readonly #sockets = new Set<Socket>();
  /** Hosts whose certificate is issued by one of the additional authorities. */
  readonly #ownHosts = new Set<string>();
  #isClosed = false;

  constructor(options: DialOptions) {
    this.#options = options;
  }

  /** A connection that is ready for a request, TLS included. Throws a `SendError`. */
  async dial(target: DialTarget, pending = this.begin()): Promise<Socket> {
    const addresses = this.#options.proxy === undefined
      ? this.checked(target, await this.resolve(target.host, pending))
      : [];
    const socket = await this.connect(target, addresses, pending);
    return target.isTls ? await this.secure(target, { socket, addresses, pending }) : socket;
  }

  begin(): PendingConnection {
    return new PendingConnection(this.#options);
  }

  /** All addresses of a host. */
  async resolve(host: string, pending = this.begin()): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    const { lookup = platformLookup } = this.#options;
    const found = lookup(host).catch((error) => {
      throw lookupError(error);
    });
    const addresses = await pending.wait(found, "no address of the host was found");
    if (addresses.length === 0) throw lookupError(undefined);
    return addresses;
  }

  /** The addresses that may be dialled; throws when there are none. */
  checked({ isTls }: DialTarget, addresses: readonly string[]): readonly string[] {
    const reasons = addresses.map((address) => this.#refusal(address, isTls));
    const open = addresses.filter((_, index) => reasons[index] === undefined);
    if (open.length > 0) return open;
    throw new SendError("blocked_address", reasons[0] ?? "the host has no address");
  }

  #refusal(address: string, isTls: boolean): string | undefined {
    const { allow, isPlainInsideOnly = false } = this.#options;
    const reason = blockedReason(address, allow);
    if (reason !== undefined) return `the address ${address} is ${reason}`;
    if (isTls || !isPlainInsideOnly || allow.contains(address)) return undefined;
    return `the address ${address} is reached by https only`;
  }

  /** A connection to the first of the addresses that answers, or through the proxy. */
  async connect(
    target: DialTarget,
    addresses: readonly string[],
    pending: PendingConnection,
  ): Promise<Socket> {
    const { proxy, clock } = this.#options;
    if (proxy !== undefined) {
      const socket = await this.#connectOne(targetOf(proxy), pending, "the proxy");
      if (target.isTls) await tunnel(socket, { proxy, target, pending });
      return socket;
    }
    let first: unknown;
    for (const [index, address] of addresses.entries()) {
      // A silent address leaves time for those after it.
      const share = (pending.end - clock.elapsed()) / (addresses.length - index);
      try {
        const own = { host: address, port: target.port };
        return await this.#connectOne(own, pending, hostPort(own), clock.elapsed() + share);
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }

  /** TLS over a connection, with the platform's authorities first, then on another one with the additional ones. */
  async secure(
    target: DialTarget,
    { socket, addresses, pending }: {
      readonly socket: Socket;
      readonly addresses: readonly string[];
      readonly pending: PendingConnection;
    },
  ): Promise<TLSSocket> {
    const { host, identity } = target;
    const own = identity?.authorities;
    const authorities = own === undefined ? this.#options.authorities : undefined;
    // With both sets in one list the platform's would be parsed for each connection, for some 50 ms.
    const isOwn = own === undefined && this.#ownHosts.has(host);
    const [first, other] = isOwn ? [authorities, undefined] : [own, authorities];
    try {
      return await handshake(socket, { host, pending, identity, authorities: first });
    } catch (error) {
      const explained = (reason: unknown) => this.#explained(reason, target, { addresses, pending });
      if (!isUntrusted(error) || authorities === undefined || authorities.length === 0) {
        throw await explained(error);
      }
      const second = await this.connect(target, addresses, pending);
      const secured = await handshake(second, { host, pending, identity, authorities: other }).catch(
        async (reason) => {
          throw await explained(isUntrusted(reason) ? error : reason);
        },
      );
      if (this.#ownHosts.size >= MAX_OWN_HOSTS) this.#ownHosts.clear();
      if (isOwn) this.#ownHosts.delete(host);
      else this.#ownHosts.add(host);
      return secured;
    }
  }

  /** The error with the date of an outdated certificate, which the platform may report as an untrusted one. */
  async #explained(
    error: unknown,
    target: DialTarget,
    { addresses, pending }: { readonly addresses: readonly string[]; readonly pending: PendingConnection },
  ): Promise<unknown> {
    if (!isUntrusted(error) && !isOutdated(error)) return error;
    try {
      // The platform hides a rejected certificate. Nothing is sent over this connection.
      const socket = await this.connect(target, addresses, pending);
      const secured = startTls(socket, { host: target.host, pending, isVerified: false });
      await pending.wait(once(secured, "secureConnect", tlsError), "the TLS handshake was not done");
      const certificate = secured.getPeerCertificate() ?? {};
      secured.destroy();
      return outdatedError(certificate, this.#options.clock.now()) ?? error;
    } catch {
      return error;
    }
  }

  /** Destroys every connection and waits until they are closed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#sockets].map((socket) => {
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.destroy();
      return closed;
    }));
  }

  async #connectOne(
    { host, port }: Pick<DialTarget, "host" | "port">,
    pending: PendingConnection,
    name: string,
    end = pending.end,
  ): Promise<Socket> {
    if (this.#isClosed) throw new SendError("interrupted", "nothing is sent any more");
    pending.check();
    const socket = connectSocket({ host, port, noDelay: true });
    pending.follow(socket);
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    // It may fail when no one listens any more.
    socket.on("error", () => {});
    await pending.wait(
      once(socket, "connect", (error) => connectError(error, name)),
      `no connection to ${name}`,
      end,
    );
    return socket;
  }
}

const MAX_OWN_HOSTS = 1_000;
const MAX_TUNNEL_HEAD = 16_384;

/** The value of `proxy-authorization` for the user name and password of a proxy's URL. */
export function proxyCredentials({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  const text = `${decoded(username)}:${decoded(password)}`;
  return `Basic ${Buffer.from(text).toString("base64")}`;
}

/** A part of a URL without its percent encoding; as it is where that is invalid. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function platformLookup(name: string): Promise<readonly string[]> {
  return (await lookUp(name, { all: true, verbatim: true })).map(({ address }) => address);
}

/** The options of TLS over a connection. */
interface HandshakeOptions {
  readonly host: string;
  readonly pending: PendingConnection;
  readonly identity?: TlsIdentity | undefined;
  /** Those of the platform when absent. */
  readonly authorities?: readonly string[] | undefined;
}

async function handshake(socket: Socket, options: HandshakeOptions): Promise<TLSSocket> {
  const { pending } = options;
  const secured = startTls(socket, { ...options, isVerified: true });
  await pending.wait(once(secured, "secureConnect", tlsError), "the TLS handshake was not done");
  if (secured.authorized) return secured;
  secured.destroy();
  throw tlsError(secured.authorizationError);
}

function startTls(
  socket: Socket,
  { host, pending, identity, authorities, isVerified }: HandshakeOptions & { readonly isVerified: boolean },
): TLSSocket {
  const { certificate: cert, key } = identity ?? {};
  const secured = connectTls({
    socket,
    host,
    ...(isIP(host) === 0 ? { servername: host.replace(/\.$/, "") } : {}),
    ...(authorities === undefined ? {} : { ca: [...authorities] }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    rejectUnauthorized: isVerified,
  });
  pending.follow(secured);
  secured.on("error", () => {});
  secured.once("close", () => socket.destroy());
  return secured;
}

/** Opens a tunnel through the proxy to the host. */
async function tunnel(
  socket: Socket,
  { proxy, target: { host, port }, pending }: {
    readonly proxy: URL;
    readonly target: DialTarget;
    readonly pending: PendingConnection;
  },
): Promise<void> {
  const authority = hostPort({ host, port });
  const credentials = proxyCredentials(proxy);
  const lines = [`CONNECT ${authority} HTTP/1.1`, `host: ${authority}`];
  if (credentials !== undefined) lines.push(`proxy-authorization: ${credentials}`);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  const status = await pending.wait(statusOfTunnel(socket), "no answer of the proxy");
  if (status >= 200 && status < 300) return;
  socket.destroy();
  throw new SendError("connect", `the proxy responded with ${status}`);
}

/** Waits for an event of a socket; `failed` converts its error or its end. */
async function once(socket: Socket, event: string, failed: (error: unknown) => SendError): Promise<void> {
  const closed = eventOf(socket, "close").then(() => Promise.reject());
  try {
    await Promise.race([eventOf(socket, event), closed]);
  } catch (error) {
    throw failed(error);
  }
}

/** The status of the response to `CONNECT`. Nothing follows its head yet: TLS begins with this side. */
function statusOfTunnel(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let head = "";
    const settle = (run: () => void) => {
      socket.removeListener("data", onPiece);
      socket.removeListener("close", onClose);
      socket.pause();
      run();
    };
    const onPiece = (piece: Buffer) => {
      head += piece.toString("latin1");
      const isWhole = head.includes("\r\n\r\n");
      if (!isWhole && head.length <= MAX_TUNNEL_HEAD) return;
      const status = isWhole ? /^HTTP\/1\.[01] (\d{3})\b/.exec(head)?.[1] : undefined;
      settle(() => {
        if (status !== undefined) resolve(Number(status));
        else reject(new SendError("protocol", "the response of the proxy is not valid HTTP"));
      });
    };
    const onClose = () => settle(() => reject(connectError(undefined, "the proxy")));
    socket.on("data", onPiece).on("close", onClose);
  });
}
