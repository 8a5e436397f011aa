import type { Redis } from "ioredis";
import type { Clock } from "../../base/clock.ts";
import type { HostAndPort, KvEndpoints, KvTarget } from "./address.ts";
import { createClient } from "./client.ts";
import type { KvConnectorOptions } from "./connector.ts";
import { KvSentinels } from "./sentinel/sentinels.ts";
import { KvStartup, type KvStartupTimes } from "./startup.ts";
import type { TlsFiles } from "../tls_files.ts";

/** How connections to a key-value cache are made. */
export interface KvConnectOptions {
  readonly address: KvEndpoints;
  /** Files for TLS; of effect only where the address says TLS, which goes without files too. */
  readonly tls?: TlsFiles | undefined;
  /** Bounds connecting, and the silence while an answer is due. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** A number from 0 to below 1, for the jitter of the waits. */
  readonly random: () => number;
  /** Attempts until the first connection; as those later when absent. */
  readonly startup?: KvStartupTimes | undefined;
  /** Called once when there was no connection in the time of `startup`, with a whole sentence. */
  readonly onGivenUp?: ((text: string) => void) | undefined;
}

/**
 * Makes every client of one key-value cache: they have the time of the start and the sentinels in
 * common. It holds nothing that has to be closed once its clients are.
 */
export class KvClients {
  readonly #options: KvConnectOptions;
  readonly #startup: KvStartup;
  readonly #sentinels: KvSentinels | undefined;

  constructor(options: KvConnectOptions) {
    this.#options = options;
    const { address, startup, clock, random, onGivenUp } = options;
    this.#startup = new KvStartup({
      times: startup,
      clock,
      random,
      onGivenUp: (reason) =>
        onGivenUp?.(
          `Cannot connect to key-value cache "${address.text}": ` +
            `no connection within KV_STARTUP_MAX_ELAPSED_TIME, ${startup?.maxElapsedMs} ms: ${reason}`,
        ),
    });
    if (address.kind === "sentinel") {
      this.#sentinels = new KvSentinels({ ...options, address, tls: tlsOf(options) });
    }
  }

  /**
   * A client that is not connected yet; once told to it connects in the background, and goes on trying.
   * Nothing is queued while there is no connection and nothing is sent twice: a counter must not move
   * twice for one hit. `node` is the one to connect to, which a cluster cannot do without.
   */
  create(node?: HostAndPort): Redis {
    const { address, timeoutMs, clock } = this.#options;
    const client = createClient({
      ...address,
      timeoutMs,
      connector: { ...this.#route(node), tls: tlsOf(this.#options), timeoutMs, clock },
      retryStrategy: (attempt) => this.#startup.delayMs(attempt),
    });
    client.on("ready", () => this.#startup.connected());
    client.on("error", (error: Error) => this.#startup.failed(error.message));
    return client;
  }

  #route(node: HostAndPort | undefined): Pick<KvConnectorOptions, "locate" | "primaryOnly"> {
    const { address } = this.#options;
    const sentinels = this.#sentinels;
    if (sentinels !== undefined && node === undefined) {
      return { locate: (signal) => sentinels.locate(signal), primaryOnly: true };
    }
    const target: KvTarget | undefined = node ?? (address.kind === "single" ? address.target : undefined);
    if (target === undefined) throw new TypeError(`Cannot connect to "${address.text}": no node is named`);
    return { locate: () => Promise.resolve({ target }), primaryOnly: false };
  }
}

/** One client of a key-value cache, as `KvClients.create` makes it. */
export function createKvClient(options: KvConnectOptions & { readonly node?: HostAndPort }): Redis {
  return new KvClients(options).create(options.node);
}

function tlsOf({ address, tls }: KvConnectOptions): TlsFiles | undefined {
  return address.tls ? tls ?? { settings: "KV_TLS" } : undefined;
}
