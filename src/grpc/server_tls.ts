import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { TlsPair, TlsPairFiles } from "../base/tls_files.ts";
import { WatchedPair } from "../base/watched_pair.ts";
import { ThrottledLog } from "../telemetry/throttled_log.ts";
import type { ListenTls } from "./tls_server.ts";

/** The TLS of a server: where its files are, and who may come. */
export interface ServerTlsOptions {
  readonly files: TlsPairFiles;
  readonly names: TlsPairFiles;
  /** A DNS name that the certificate of every client must have. */
  readonly clientName: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What takes a new pair while it serves. */
export interface RenewableServer {
  renewTls(pair: TlsPair): void;
}

/** The server, once there is one. */
interface Started {
  server?: RenewableServer;
}

/** Keeps a server on the pair that its files hold, and tells of the clients that are sent away. */
export class ServerTls {
  readonly #options: ServerTlsOptions;
  readonly #pair: WatchedPair;
  readonly #started: Started;
  readonly #refusals: ThrottledLog;
  #refused = 0;

  /** Reads the files; throws when they cannot be used. */
  static async open(options: ServerTlsOptions): Promise<ServerTls> {
    const { files, names, clock, logger } = options;
    const started: Started = {};
    const onPair = (pair: TlsPair) => started.server?.renewTls(pair);
    return new ServerTls(options, await WatchedPair.open({ files, names, clock, logger, onPair }), started);
  }

  private constructor(options: ServerTlsOptions, pair: WatchedPair, started: Started) {
    this.#options = options;
    this.#started = started;
    this.#pair = pair;
    this.#refusals = new ThrottledLog(options.logger, { clock: options.clock });
  }

  /** Starts a server with the pair that holds now, and gives it every later one. */
  async start<T extends RenewableServer>(start: (tls: ListenTls) => Promise<T>): Promise<T> {
    const pair = this.#pair.current;
    const server = await start({
      ...pair,
      clientName: this.#options.clientName,
      now: () => this.#options.clock.now(),
      onRefused: ({ kind, cause, peer }) => {
        this.#refused++;
        this.#refusals.warning(kind, "A client of the gRPC port is refused", { cause, peer });
      },
    });
    this.#started.server = server;
    if (this.#pair.current !== pair) server.renewTls(this.#pair.current);
    return server;
  }

  /** How many clients were sent away, and how many later pairs came into force or could not. */
  get figures(): { readonly refused: number; readonly reloaded: number; readonly failed: number } {
    return { refused: this.#refused, ...this.#pair.figures };
  }

  /** Ends the watch of the files. */
  async close(): Promise<void> {
    await this.#pair.close();
  }
}
