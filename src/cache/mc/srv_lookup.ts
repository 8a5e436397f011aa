import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { HostAndPort } from "../../base/host_port.ts";

const LOOKUP_TIMEOUT_MS = 5_000;
const RETRY = { firstMs: 250, longestMs: 10_000 };

/** The part of an SRV record that is used. */
export type SrvRecord = Pick<Deno.SrvRecord, "target" | "port">;

/** The lookup of the list of nodes. */
export interface McSrv {
  /** Such as `_mc._tcp.example.com`. */
  readonly name: string;
  /** Milliseconds until the next lookup; 0 means never. */
  readonly refreshMs: number;
  readonly resolveSrv: (
    name: string,
    options: { readonly signal: AbortSignal },
  ) => Promise<readonly SrvRecord[]>;
}

/** Options of the lookups of nodes. */
export interface McSrvLookupOptions extends McSrv {
  readonly clock: Clock;
  readonly random: () => number;
  /** Called with each list, in the order in which nodes are chosen. */
  readonly onNodes: (nodes: readonly HostAndPort[]) => void;
  /** Called when a lookup fails, once an outage, and when one succeeds after that. */
  readonly onLookup?: ((found: boolean, reason: string) => void) | undefined;
}

/** Looks the nodes up, now and after each interval. A lookup that fails is retried and changes nothing. */
export class McSrvLookup {
  readonly #options: McSrvLookupOptions;
  #failures = 0;
  #isClosed = false;
  #abort = new AbortController();
  #cancelNext: (() => void) | undefined;
  #running: Promise<void>;

  constructor(options: McSrvLookupOptions) {
    this.#options = options;
    this.#running = this.#lookUp();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelNext?.();
    this.#abort.abort();
    await this.#running;
  }

  async #lookUp(): Promise<void> {
    const { refreshMs, onNodes, onLookup } = this.#options;
    try {
      const nodes = nodesOf(await this.#resolve());
      if (this.#isClosed) return;
      if (this.#failures > 0) onLookup?.(true, "");
      this.#failures = 0;
      onNodes(nodes);
      if (refreshMs > 0) this.#lookUpIn(refreshMs);
    } catch (error) {
      if (this.#isClosed) return;
      if (++this.#failures === 1) onLookup?.(false, errorText(error));
      this.#lookUpIn(backoffMs(this.#failures, this.#options.random(), RETRY));
    }
  }

  #lookUpIn(delayMs: number): void {
    this.#cancelNext = this.#options.clock.after(delayMs, () => void (this.#running = this.#lookUp()));
  }

  async #resolve(): Promise<readonly SrvRecord[]> {
    const { name, resolveSrv, clock } = this.#options;
    const abort = this.#abort = new AbortController();
    const ended = Promise.withResolvers<never>();
    abort.signal.addEventListener("abort", () => ended.reject(new Error("the lookup was cancelled")));
    const cancel = clock.after(LOOKUP_TIMEOUT_MS, () => {
      ended.reject(new Error(`no answer within ${LOOKUP_TIMEOUT_MS} ms`));
      abort.abort();
    });
    try {
      return await Promise.race([resolveSrv(name, { signal: abort.signal }), ended.promise]);
    } finally {
      cancel();
    }
  }
}

/** The nodes in the order of their texts, each with the dot at its end, as for other programs that share them. */
function nodesOf(records: readonly SrvRecord[]): HostAndPort[] {
  const nodes = records
    .map(({ target, port }) => ({ host: target.replace(/\.$/, ""), port }))
    .filter(({ host }) => host !== "")
    .map((node) => ({ node, text: `${node.host}.:${node.port}` }));
  if (nodes.length === 0) throw new Error("the answer names no node");
  return nodes.sort((a, b) => a.text < b.text ? -1 : a.text > b.text ? 1 : 0).map(({ node }) => node);
}
