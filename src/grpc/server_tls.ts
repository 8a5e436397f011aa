import { systemBell } from "../threads/bell.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { TlsPair, TlsPairFiles } from "../net/tls_files.ts";
import { WatchedPair } from "../net/watched_pair.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import type { ListenTls } from "./tls_server.ts";

interface ServerTlsOptions {
  readonly files: TlsPairFiles;
  readonly names: TlsPairFiles;
  /** A DNS name that the certificate of every client must have. */
  readonly clientName: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A server that can use another pair while it runs. */
interface RenewableServer {
  renewTls(pair: TlsPair): void;
}

interface Started {
  server?: RenewableServer;
}

/** Keeps a server on the current pair of its files, and logs refused clients. */
export class ServerTls {
  readonly #options: ServerTlsOptions;
  readonly #pair: WatchedPair;
  readonly #started: Started;
  readonly #refusals: ThrottledLog;
  #refused = 0;

  /** Reads the files; throws when they are unusable. */
  static async open(options: ServerTlsOptions): Promise<ServerTls> {
    const { files, names, clock, logger } = options;
    const started: Started = {};
    const onPair = (pair: TlsPair) => started.server?.renewTls(pair);
    const pair = await WatchedPair.open({ files, names, bell: systemBell, clock, logger, onPair });
    return new ServerTls(options, pair, started);
  }

  private constructor(options: ServerTlsOptions, pair: WatchedPair, started: Started) {
    this.#options = options;
    this.#started = started;
    this.#pair = pair;
    this.#refusals = new ThrottledLog(options.logger, { clock: options.clock });
  }

  /** Starts a server with the current pair and gives it every later one. */
  async start<T extends RenewableServer>(start: (tls: ListenTls) => Promise<T>): Promise<T> {
    const pair = this.#pair.current;
    const server = await start({
      ...pair,
      clientName: this.#options.clientName,
      now: () => this.#options.clock.now(),
      onRefused: ({ kind, cause, peer }) => {
        this.#refused++;
        this.#refusals.warning(kind, "gRPC client refused", { cause, peer });
      },
    });
    this.#started.server = server;
    if (this.#pair.current !== pair) server.renewTls(this.#pair.current);
    return server;
  }

  /** Numbers of refused clients, and of later pairs that were applied or unusable. */
  get metrics(): { readonly refused: number; readonly reloaded: number; readonly failed: number } {
    return { refused: this.#refused, ...this.#pair.metrics };
  }

  async close(): Promise<void> {
    await this.#pair.close();
  }
}
