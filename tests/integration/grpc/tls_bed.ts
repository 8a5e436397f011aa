import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { X509Certificate } from "node:crypto";
import tls from "node:tls";
import { FakeClock } from "../../harness/fake_clock.ts";
import type { GrpcEngine, GrpcEngineOptions } from "../../../src/grpc/engine.ts";
import type { ListenTarget } from "../../../src/grpc/listener.ts";
import type { TlsPair } from "../../../src/net/tls_files.ts";
import { ListenerTls } from "../../../src/grpc/listener_tls.ts";
import { WatchedPair } from "../../../src/net/watched_pair.ts";
import { systemBell } from "../../../src/threads/bell.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { GrpcClient } from "../../harness/grpc_client.ts";
import { greeting } from "../../harness/h2_peer.ts";
import { requireTool } from "../../harness/tools.ts";
import { Probe, probePath } from "../../harness/probe.ts";

/** The name that clients have to have where one is asked for. */
export const CLIENT_NAME = "proxy.test";

/** The certificates that an engine asks for. */
interface TlsBedOptions {
  readonly asksClients?: boolean;
  readonly clientName?: string;
  readonly target?: ListenTarget;
  /** Handshake timeout. */
  readonly handshakeMs?: number;
}

const NAMES = { cert: "GRPC_SERVER_TLS_CERT", key: "GRPC_SERVER_TLS_KEY", ca: "GRPC_CLIENT_TLS_CACERT" };

/** An engine that serves over TLS with its own certificates. */
export class TlsBed implements AsyncDisposable {
  readonly certificates: Certificates;
  readonly tls: ListenerTls;
  readonly pair: WatchedPair;
  readonly engine: GrpcEngine;
  readonly probe: Probe;
  /** Log lines from warnings upwards. */
  readonly log: readonly string[];
  /** Moves both clocks on by more than a second, so that the next line of a kind is logged. */
  readonly pass: (ms?: number) => void;
  /** Lets so much time have passed for what waits for a while. */
  readonly elapse: (ms: number) => void;

  static async open(
    start: (options: GrpcEngineOptions) => Promise<GrpcEngine>,
    { asksClients = false, clientName, target = FREE_PORT, handshakeMs }: TlsBedOptions = {},
  ): Promise<TlsBed> {
    const certificates = await makeCertificates();
    const { server: { certFile, keyFile }, authority } = certificates;
    const [log, probe]: [string[], Probe] = [[], new Probe()];
    // The time of the day stands still, an hour from now: whatever certificate is made until then is valid.
    const clock = FakeClock.ofMachine({ now: Date.now() + 3_600_000 });
    const write = (line: string) => void log.push(line);
    const logger = createLogger({ level: "warning", format: "text", clock, write });
    const files = { cert: certFile, key: keyFile, ...(asksClients ? { ca: authority.certFile } : {}) };
    const onPair = (renewed: TlsPair) => serverTls.renew(renewed);
    const pair = await WatchedPair.open({ files, names: NAMES, bell: systemBell, clock, logger, onPair });
    const serverTls = new ListenerTls(pair.current, { clientName, handshakeMs, clock, logger });
    const engine = await start({
      services: [probe.service],
      target,
      tls: serverTls,
      maxConnectionAgeMs: 0,
      maxConnectionAgeGraceMs: 0,
      logger,
      clock,
      random: () => 0.5,
    });
    const pass = (ms = 2_000) => {
      clock.aheadMs += ms;
      clock.elapsedAheadMs += ms;
    };
    const elapse = (ms: number) => void (clock.elapsedAheadMs += ms);
    return new TlsBed({ certificates, tls: serverTls, pair, engine, probe, log, pass, elapse });
  }

  private constructor(
    parts: Pick<TlsBed, "certificates" | "tls" | "pair" | "engine" | "probe" | "log" | "pass" | "elapse">,
  ) {
    this.certificates = parts.certificates;
    this.tls = parts.tls;
    this.pair = parts.pair;
    this.engine = parts.engine;
    this.probe = parts.probe;
    this.log = parts.log;
    this.pass = parts.pass;
    this.elapse = parts.elapse;
  }

  get port(): number {
    return Number(this.engine.address.split(":").at(-1));
  }

  get server(): CertificateFiles {
    return this.certificates.server;
  }

  /** Why clients were refused, as far as that was logged. */
  causes(): string[] {
    return this.log.flatMap((line) => {
      const text = / cause=("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
      return text === undefined ? [] : [String(JSON.parse(text))];
    });
  }

  /** A gRPC client with this certificate, or with none. */
  client(files?: CertificateFiles): TlsClient {
    return new TlsClient(`127.0.0.1:${this.port}`, this.certificates, files);
  }

  /** A client that connects once, and does not go on until it knows whether it is welcome. */
  async peer(options: tls.ConnectionOptions, files?: CertificateFiles): Promise<TlsPeer> {
    const address = options.path === undefined ? { host: "127.0.0.1", port: this.port } : {};
    const own = files === undefined
      ? {}
      : { cert: await Deno.readTextFile(files.certFile), key: await Deno.readTextFile(files.keyFile) };
    const ca = await Deno.readTextFile(this.certificates.authority.certFile);
    return await TlsPeer.connect({
      ...address,
      ...own,
      ca,
      servername: "localhost",
      ALPNProtocols: ["h2"],
      ...options,
    });
  }

  /** Of the certificate that is in the file now. */
  async fingerprintOf({ certFile }: CertificateFiles): Promise<string> {
    return new X509Certificate(await Deno.readTextFile(certFile)).fingerprint256;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.pair.close(), this.engine.close(1_000)]);
    await this.certificates[Symbol.asyncDispose]();
  }
}

const FREE_PORT: ListenTarget = { kind: "tcp", host: "127.0.0.1", port: 0 };

/** A socket that has offered HTTP/2 and was answered, or closed. */
export class TlsPeer implements AsyncDisposable {
  readonly isWelcome: boolean;
  readonly version: string | null;
  /** Of the certificate that the server showed. */
  readonly fingerprint: string | undefined;
  readonly #socket: tls.TLSSocket;
  readonly #closed: Promise<void>;
  #isOpen = true;

  static async connect(options: tls.ConnectionOptions): Promise<TlsPeer> {
    const socket = tls.connect(options);
    const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    socket.on("error", () => {});
    let seen: { version: string | null; fingerprint: string | undefined } | undefined;
    socket.on("secureConnect", () => {
      seen = {
        version: socket.getProtocol(),
        fingerprint: socket.getPeerX509Certificate()?.fingerprint256,
      };
      socket.write(greeting());
    });
    const answered = new Promise<boolean>((resolve) => socket.once("data", () => resolve(true)));
    const isWelcome = await Promise.race([answered, closed.then(() => false)]);
    return new TlsPeer(socket, closed, { isWelcome, version: null, fingerprint: undefined, ...seen });
  }

  private constructor(
    socket: tls.TLSSocket,
    closed: Promise<void>,
    seen: Pick<TlsPeer, "isWelcome" | "version" | "fingerprint">,
  ) {
    this.#socket = socket;
    this.#closed = closed.then(() => void (this.#isOpen = false));
    this.isWelcome = seen.isWelcome;
    this.version = seen.version;
    this.fingerprint = seen.fingerprint;
  }

  /** True if the connection lives. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    await this.#closed;
  }
}

/** Calls of the probe over TLS. */
export class TlsClient implements Disposable {
  readonly #client: GrpcClient;

  constructor(address: string, { authority }: Certificates, files: CertificateFiles | undefined) {
    const read = (path: string) => Buffer.from(Deno.readFileSync(path));
    const own = files === undefined ? [null, null] : [read(files.keyFile), read(files.certFile)];
    const credentials = grpc.credentials.createSsl(read(authority.certFile), ...own);
    this.#client = new GrpcClient(address, { "grpc.ssl_target_name_override": "localhost" }, credentials);
  }

  /** The answer of the server to the text: the same. */
  echo(text: string): Promise<string> {
    return this.#call("Echo", text);
  }

  /** The answer of the test in place of the server. */
  hold(text: string): Promise<string> {
    return this.#call("Hold", text);
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]();
  }

  async #call(method: string, text: string): Promise<string> {
    const { code, details, messages } = await this.#client.unary(
      probePath(method),
      new TextEncoder().encode(text),
    );
    return code === 0 ? new TextDecoder().decode(messages[0]) : `${code} ${details}`;
  }
}

/** Runs openssl with nothing to read, and answers all that it wrote. */
export async function openssl(args: readonly string[]): Promise<{ readonly text: string }> {
  await using child = new ChildProcess(requireTool("openssl"), { args: [...args] });
  await child.exited;
  return { text: [...child.stdoutLines, ...child.stderrLines].join("\n") };
}

/** Writes a file anew in one step: no reader sees half of it. */
export async function replaceText(path: string, text: string): Promise<void> {
  await Deno.writeTextFile(`${path}.new`, text);
  await Deno.rename(`${path}.new`, path);
}
