import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { McAddress } from "./connection.ts";

/** Longest time that a look-up may take. */
const LOOKUP_TIMEOUT_MS = 5_000;
/** Waits after look-ups that failed. */
const RETRY = { firstMs: 250, longestMs: 10_000 };

/** What is needed of an SRV record. */
export interface SrvRecord {
  readonly target: string;
  readonly port: number;
}

/** Looks an SRV name up, such as `(name, options) => Deno.resolveDns(name, "SRV", options)`. */
export type ResolveSrv = (
  name: string,
  options: { readonly signal: AbortSignal },
) => Promise<readonly SrvRecord[]>;

/** Where the list of nodes comes from when it is not written down. */
export interface McSrv {
  /** Such as `_mc._tcp.example.com`. */
  readonly name: string;
  /** After how many milliseconds it is looked up again; 0 means never. */
  readonly refreshMs: number;
  readonly resolveSrv: ResolveSrv;
}

/** How nodes are looked up. */
export interface McHostsOptions extends McSrv {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Takes each list that was found, in the order in which nodes are chosen. */
  readonly onNodes: (nodes: readonly McAddress[]) => void;
  /** Called when a look-up fails, once an outage, and when one succeeds after that. */
  readonly onLookup?: ((found: boolean, reason: string) => void) | undefined;
}

/**
 * Looks the nodes up, now and whenever it is time. A look-up that fails is tried again and changes
 * nothing.
 */
export class McHosts {
  readonly #options: McHostsOptions;
  #failures = 0;
  #closed = false;
  #abort = new AbortController();
  #cancelNext: (() => void) | undefined;
  #running: Promise<void>;

  constructor(options: McHostsOptions) {
    this.#options = options;
    this.#running = this.#lookUp();
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelNext?.();
    this.#abort.abort();
    await this.#running;
  }

  async #lookUp(): Promise<void> {
    const { name, resolveSrv, refreshMs, onNodes, onLookup } = this.#options;
    try {
      const nodes = nodesOf(await this.#withinTime((signal) => resolveSrv(name, { signal })));
      if (this.#closed) return;
      if (this.#failures > 0) onLookup?.(true, "");
      this.#failures = 0;
      onNodes(nodes);
      if (refreshMs > 0) this.#lookUpIn(refreshMs);
    } catch (error) {
      if (this.#closed) return;
      if (++this.#failures === 1) onLookup?.(false, errorText(error));
      this.#lookUpIn(backoffMs(this.#failures, this.#options.random(), RETRY));
    }
  }

  #lookUpIn(delayMs: number): void {
    this.#cancelNext = this.#options.clock.after(delayMs, () => void (this.#running = this.#lookUp()));
  }

  async #withinTime<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = this.#abort = new AbortController();
    const ended = Promise.withResolvers<never>();
    abort.signal.addEventListener("abort", () => ended.reject(new Error("the look-up was ended")));
    const cancel = this.#options.clock.after(LOOKUP_TIMEOUT_MS, () => {
      ended.reject(new Error(`no answer within ${LOOKUP_TIMEOUT_MS} ms`));
      abort.abort();
    });
    try {
      return await Promise.race([run(abort.signal), ended.promise]);
    } finally {
      cancel();
    }
  }
}

/**
 * The nodes of an answer in the order of their texts. The dot at the end of a target takes part in that,
 * because it does so for everybody else who shares these nodes.
 */
function nodesOf(records: readonly SrvRecord[]): McAddress[] {
  const nodes = records
    .map(({ target, port }) => ({ host: target.replace(/\.$/, ""), port }))
    .filter(({ host }) => host !== "")
    .map((node) => ({ node, text: `${node.host}.:${node.port}` }));
  if (nodes.length === 0) throw new Error("the answer names no node");
  return nodes.sort((a, b) => a.text < b.text ? -1 : a.text > b.text ? 1 : 0).map(({ node }) => node);
}
