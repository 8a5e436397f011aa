import { Buffer } from "node:buffer";
import { lookup as lookUp } from "node:dns/promises";
import { connect as connectSocket, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { answeredWithin } from "../../base/wait.ts";
import { hostPort } from "../../base/host_port.ts";
import { blockedReason, type Cidrs } from "../model/address_ranges.ts";
import { parseIpAddress } from "../model/ip_address.ts";
import { connectError, isUntrusted, lookupError, SendError, tlsError } from "./send_error.ts";

/** All addresses of a name, those to try first in front. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** How connections are made. */
export interface DialOptions {
  /** Ranges that are open although they are blocked for others. */
  readonly allow: Cidrs;
  /** From the question for the name to the end of the TLS handshake. */
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
  /** Authorities in PEM that are trusted beside the platform's. */
  readonly authorities?: readonly string[] | undefined;
  /** An HTTP proxy, with user name and password where it wants them; it decides what may be reached. */
  readonly proxy?: URL | undefined;
  /** Whether `http` goes only to addresses in `allow`. */
  readonly isPlainInsideOnly?: boolean | undefined;
  /** The platform's own when absent. */
  readonly lookup?: Lookup | undefined;
}

/** Where a connection leads. */
export interface DialTarget {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

/** The host and port of a URL, as they are dialled. */
export function targetOf(url: URL): DialTarget {
  const isTls = url.protocol === "https:";
  const port = url.port === "" ? (isTls ? 443 : 80) : Number(url.port);
  return { host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port, isTls };
}

/** A connection in the making. It has to be there at a time, and may be given up before. */
export class Dialling {
  /** By the clock's `elapsed`. */
  readonly end: number;
  #socket: Socket | undefined;
  #isGivenUp = false;

  constructor(end: number) {
    this.end = end;
  }

  /** Ends what there is of it at the moment, and all that would come of it. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.#socket?.destroy();
  }

  /** Throws where nobody waits for it any more. */
  check(): void {
    if (this.#isGivenUp) throw new SendError("interrupted", "it was given up before it was sent");
  }

  /** Takes what there is of it now. */
  follow(socket: Socket): void {
    this.#socket = socket;
  }
}

/**
 * Makes connections to addresses that were checked, and to no others: names are resolved here, and what is dialled is
 * always an address.
 */
export class Dialler {
  readonly #options: DialOptions;
  readonly #sockets = new Set<Socket>();
  /** Hosts whose certificate is of one of the authorities given here. */
  readonly #ownHosts = new Set<string>();
  /** Why addresses may not be dialled, or nothing where they may. */
  readonly #refusals = new Map<string, string | undefined>();
  #isClosed = false;

  constructor(options: DialOptions) {
    this.#options = options;
  }

  /** A connection that is ready for a request, TLS included. Throws a `SendError`. */
  async dial(target: DialTarget, dialling = this.begin()): Promise<Socket> {
    const addresses = this.#options.proxy === undefined
      ? this.checked(target, await this.resolve(target.host, dialling))
      : [];
    const socket = await this.connect(target, addresses, dialling);
    return target.isTls ? await this.secure(target, { socket, addresses, dialling }) : socket;
  }

  /** A connection whose time begins now. */
  begin(): Dialling {
    return new Dialling(this.#options.clock.elapsed() + this.#options.connectTimeoutMs);
  }

  /** All addresses of a host. */
  async resolve(host: string, { end } = this.begin()): Promise<readonly string[]> {
    if (parseIpAddress(host) !== undefined) return [host];
    const { lookup = platformLookup } = this.#options;
    const found = lookup(host).catch((error) => {
      throw lookupError(error);
    });
    const addresses = await this.#within(found, end, "no address of the host was found");
    if (addresses.length === 0) throw lookupError(undefined);
    return addresses;
  }

  /** Those of the addresses that may be dialled; throws where none may. */
  checked({ isTls }: DialTarget, addresses: readonly string[]): readonly string[] {
    const reasons = addresses.map((address) => this.#refusal(address, isTls));
    const open = addresses.filter((_, index) => reasons[index] === undefined);
    if (open.length > 0) return open;
    throw new SendError("blocked_address", reasons[0] ?? "the host has no address");
  }

  /** Why an address may not be dialled. The ranges never change, so each is looked at once. */
  #refusal(address: string, isTls: boolean): string | undefined {
    const { allow, isPlainInsideOnly = false } = this.#options;
    const key = `${isTls} ${address}`;
    if (this.#refusals.has(key)) return this.#refusals.get(key);
    const reason = blockedReason(address, allow);
    let refusal = reason === undefined ? undefined : `the address ${address} is ${reason}`;
    if (reason === undefined && !isTls && isPlainInsideOnly && !allow.contains(address)) {
      refusal = `the address ${address} is reached by https only`;
    }
    if (this.#refusals.size >= MAX_REFUSALS) this.#refusals.clear();
    this.#refusals.set(key, refusal);
    return refusal;
  }

  /** A connection to the first of the addresses that answers, or through the proxy. */
  async connect(
    { host, port, isTls }: DialTarget,
    addresses: readonly string[],
    dialling: Dialling,
  ): Promise<Socket> {
    const { proxy, clock } = this.#options;
    const { end } = dialling;
    if (proxy !== undefined) {
      const socket = await this.#connectOne(targetOf(proxy), { dialling, end, name: "the proxy" });
      if (isTls) await this.#tunnel(socket, proxy, { host, port, end });
      return socket;
    }
    let first: unknown;
    for (const [index, address] of addresses.entries()) {
      // A silent address leaves time for those after it.
      const share = (end - clock.elapsed()) / (addresses.length - index);
      try {
        const own = { dialling, end: clock.elapsed() + share, name: address };
        return await this.#connectOne({ host: address, port }, own);
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }

  /** TLS over a connection; a certificate that the platform does not trust is shown to the other authorities. */
  async secure(
    target: DialTarget,
    { socket, addresses, dialling }: {
      readonly socket: Socket;
      readonly addresses: readonly string[];
      readonly dialling: Dialling;
    },
  ): Promise<TLSSocket> {
    const { authorities = [] } = this.#options;
    const { host } = target;
    // Both sets in one list would have all of the platform's parsed anew for each connection, for some 50 ms.
    const isOwn = this.#ownHosts.has(host);
    try {
      return await this.#handshake(socket, host, { dialling, authorities: isOwn ? authorities : undefined });
    } catch (error) {
      if (!(error instanceof SendError) || !isUntrusted(error) || authorities.length === 0) throw error;
      const second = await this.connect(target, addresses, dialling);
      let secured: TLSSocket;
      try {
        const others = isOwn ? undefined : authorities;
        secured = await this.#handshake(second, host, { dialling, authorities: others });
      } catch (other) {
        throw other instanceof SendError && isUntrusted(other) ? error : other;
      }
      this.#remember(host, !isOwn);
      return secured;
    }
  }

  /** Ends every connection and waits until they are closed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#sockets].map((socket) => {
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.destroy();
      return closed;
    }));
  }

  #remember(host: string, isOwn: boolean): void {
    this.#ownHosts.delete(host);
    if (!isOwn) return;
    const [oldest] = this.#ownHosts;
    if (this.#ownHosts.size >= MAX_OWN_HOSTS && oldest !== undefined) this.#ownHosts.delete(oldest);
    this.#ownHosts.add(host);
  }

  async #connectOne(
    { host, port }: Pick<DialTarget, "host" | "port">,
    { dialling, end, name }: { readonly dialling: Dialling; readonly end: number; readonly name: string },
  ): Promise<Socket> {
    if (this.#isClosed) throw new SendError("interrupted", "nothing is sent any more");
    dialling.check();
    const socket = connectSocket({ host, port, noDelay: true });
    dialling.follow(socket);
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    // It may fail long after everyone has lost interest.
    socket.on("error", () => {});
    const connected = once(socket, "connect", (error) => connectError(error, name));
    return await this.#orDestroy(socket, connected, end, `no connection to ${name}`);
  }

  async #handshake(
    socket: Socket,
    host: string,
    { dialling, authorities }: {
      readonly dialling: Dialling;
      readonly authorities: readonly string[] | undefined;
    },
  ): Promise<TLSSocket> {
    const secured = connectTls({
      socket,
      host,
      ...(parseIpAddress(host) === undefined ? { servername: host.replace(/\.$/, "") } : {}),
      ...(authorities === undefined ? {} : { ca: [...authorities] }),
      ALPNProtocols: ["http/1.1"],
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
    });
    dialling.follow(secured);
    secured.on("error", () => {});
    secured.once("close", () => socket.destroy());
    const done = once(secured, "secureConnect", tlsError);
    await this.#orDestroy(socket, done, dialling.end, "the TLS handshake was not done");
    if (secured.authorized) return secured;
    secured.destroy();
    throw tlsError(secured.authorizationError);
  }

  /** Asks the proxy for a way through to the host. */
  async #tunnel(
    socket: Socket,
    proxy: URL,
    { host, port, end }: { readonly host: string; readonly port: number; readonly end: number },
  ): Promise<void> {
    const authority = hostPort({ host, port });
    const credentials = proxyCredentials(proxy);
    const lines = [`CONNECT ${authority} HTTP/1.1`, `host: ${authority}`];
    if (credentials !== undefined) lines.push(`proxy-authorization: ${credentials}`);
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    const status = await this.#orDestroy(socket, statusOfTunnel(socket), end, "no answer of the proxy");
    if (status >= 200 && status < 300) return;
    socket.destroy();
    throw new SendError("connect", `the proxy answered ${status}`);
  }

  async #orDestroy<T>(socket: Socket, work: Promise<T>, end: number, state: string): Promise<T> {
    try {
      return await this.#within(work, end, state);
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  #within<T>(work: Promise<T>, end: number, state: string): Promise<T> {
    const { clock, connectTimeoutMs } = this.#options;
    const left = Math.max(0, end - clock.elapsed());
    const late = () => new SendError("timeout", `${state} within ${connectTimeoutMs} ms`);
    return answeredWithin(work, left, clock, late);
  }
}

const MAX_OWN_HOSTS = 1_000;
const MAX_REFUSALS = 1_000;
const MAX_TUNNEL_HEAD = 16_384;

/** The value of `proxy-authorization` for the user name and password of a proxy's URL. */
export function proxyCredentials({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  const text = `${decoded(username)}:${decoded(password)}`;
  return `Basic ${Buffer.from(text).toString("base64")}`;
}

/** A part of a URL as it was meant; as it stands where its percent signs mean nothing. */
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

/** Waits for an event of a socket; an error or its end come as what `failed` makes of them. */
function once(socket: Socket, event: string, failed: (error: unknown) => SendError): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const settle = (run: () => void) => {
      socket.removeListener(event, onEvent);
      socket.removeListener("error", onError);
      socket.removeListener("close", onClose);
      run();
    };
    const onEvent = () => settle(() => resolve(socket));
    const onError = (error: unknown) => settle(() => reject(failed(error)));
    const onClose = () => settle(() => reject(failed(undefined)));
    socket.on(event, onEvent).on("error", onError).on("close", onClose);
  });
}

/** The status that a proxy answers to `CONNECT`. Of what comes behind its head nothing is there yet: TLS begins here. */
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
        else reject(new SendError("protocol", "the answer of the proxy is no HTTP that can be read"));
      });
    };
    const onClose = () => settle(() => reject(connectError(undefined, "the proxy")));
    socket.on("data", onPiece).on("close", onClose);
  });
}
