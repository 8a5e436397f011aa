import type { HostAndPort } from "../../base/host_port.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";
import type { TlsFiles } from "../tls_files.ts";
import type { KvEndpoints } from "./address.ts";
import { KvConnection, type KvConnectionEvents } from "./connection.ts";
import type { KvConnectorOptions } from "./connector.ts";
import { KvSentinels } from "./sentinel/sentinels.ts";
import { KvStartup, type KvStartupTimes } from "./startup.ts";

/** How connections to a key-value cache are made. */
export interface KvConnectionsOptions extends Pick<SharedCacheOptions, "timeoutMs" | "clock" | "random"> {
  readonly address: KvEndpoints;
  /** Files for TLS; of effect only where the address requires TLS, which works without files too. */
  readonly tls?: TlsFiles | undefined;
  /** Waits until the first connection; those of a reconnect when absent. */
  readonly startup?: KvStartupTimes | undefined;
  /** Called once when there was no connection in the time of `startup`, with a whole sentence. */
  readonly onGivenUp?: ((text: string) => void) | undefined;
}

/** Opens every connection to one key-value cache. They share the time of the start and the sentinels. */
export class KvConnections {
  readonly #options: KvConnectionsOptions;
  readonly #tls: TlsFiles | undefined;
  readonly #startup: KvStartup;
  readonly #sentinels: KvSentinels | undefined;

  constructor(options: KvConnectionsOptions) {
    const { address, startup, clock, random, onGivenUp } = options;
    this.#options = options;
    this.#tls = address.tls ? options.tls ?? { settings: "KV_TLS" } : undefined;
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
      this.#sentinels = new KvSentinels({ ...options, address, tls: this.#tls });
    }
  }

  /** Opens a connection to the primary, or to `node`, which a cluster requires. */
  open(events: KvConnectionEvents, node?: HostAndPort): KvConnection {
    const { address, timeoutMs, clock } = this.#options;
    const primaryOnly = this.#sentinels !== undefined && node === undefined;
    const connector = { locate: this.#locator(node), tls: this.#tls, timeoutMs, clock };
    return new KvConnection({ ...address, connector, primaryOnly, startup: this.#startup }, events);
  }

  #locator(node: HostAndPort | undefined): KvConnectorOptions["locate"] {
    const { address } = this.#options;
    const sentinels = this.#sentinels;
    if (sentinels !== undefined && node === undefined) return (signal) => sentinels.locate(signal);
    const target = node ?? (address.kind === "single" ? address.target : undefined);
    if (target === undefined) throw new TypeError(`Cannot connect to "${address.text}": no node is named`);
    return () => Promise.resolve({ target });
  }
}
