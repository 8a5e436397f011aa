import type { Redis } from "ioredis";
import type net from "node:net";
import type { Clock } from "../base/clock.ts";
import { type HostAndPort, hostAndPortText, type KvSentinel, type KvTarget } from "./kv_address.ts";
import { createClient } from "./kv_client.ts";
import type { TlsFiles } from "./tls_files.ts";

/** Pause between two looks at who the primary is, while there are connections to it. */
const WATCH_INTERVAL_MS = 500;
/** After so many looks another sentinel is asked, since one may be cut off from all others. */
const LOOKS_PER_SENTINEL = 10;
const MAX_SENTINELS = 16;

/** How the sentinels are asked. */
export interface KvSentinelsOptions {
  readonly address: KvSentinel;
  readonly tls: TlsFiles | undefined;
  /** Bounds one round through all of them. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** What a sentinel says. */
interface Opinion {
  readonly primary: HostAndPort;
  /** Grows with each failover; 0 when the sentinel does not tell. */
  readonly epoch: number;
  readonly others: readonly HostAndPort[];
}

/** An open connection to a sentinel, kept for further questions. */
interface Session {
  readonly sentinel: HostAndPort;
  readonly client: Redis;
}

/** Finds the primary by asking sentinels, and lets go of connections to a server that no longer is it. */
export class KvSentinels {
  readonly #options: KvSentinelsOptions;
  /** In the order in which they are asked: the one that answered last comes first. */
  #sentinels: readonly HostAndPort[];
  readonly #followed = new Map<net.Socket, { readonly target: string; readonly epoch: number }>();
  #epoch = 0;
  #looks = 0;
  #asking: Promise<HostAndPort> | undefined;
  #session: Session | undefined;
  #cancelWatch: (() => void) | undefined;
  /** Those who wait for an answer. */
  readonly #waiting = new Set<AbortSignal>();
  readonly #endIfIdle = () => {
    if (!this.#isIdle()) return;
    this.#cancelWatch?.();
    this.#cancelWatch = undefined;
    this.#endSession();
  };

  constructor(options: KvSentinelsOptions) {
    this.#options = options;
    this.#sentinels = options.address.sentinels;
  }

  /** The sentinels that are known now: those of the settings, and those that they told of. */
  get known(): readonly HostAndPort[] {
    return this.#sentinels;
  }

  /** Where the primary is now. Everyone who asks at the same time shares one round. */
  async locate(signal: AbortSignal): Promise<HostAndPort> {
    this.#waiting.add(signal);
    signal.addEventListener("abort", this.#endIfIdle, { once: true });
    try {
      this.#asking ??= this.#askAll().finally(() => this.#asking = undefined);
      return await this.#asking;
    } finally {
      signal.removeEventListener("abort", this.#endIfIdle);
      this.#waiting.delete(signal);
      this.#endIfIdle();
    }
  }

  /** Destroys the stream when its target is not the primary any more. */
  follow(stream: net.Socket, target: KvTarget): void {
    if (!("host" in target)) return;
    this.#followed.set(stream, { target: hostAndPortText(target), epoch: this.#epoch });
    stream.once("close", () => {
      this.#followed.delete(stream);
      this.#endIfIdle();
    });
    this.#watch();
  }

  #watch(): void {
    this.#cancelWatch ??= this.#options.clock.after(WATCH_INTERVAL_MS, () => {
      this.#cancelWatch = undefined;
      void this.#look();
    });
  }

  /** Never rejects: what is connected goes on as it is while no sentinel answers. */
  async #look(): Promise<void> {
    if (++this.#looks % LOOKS_PER_SENTINEL === 0 && this.#asking === undefined) {
      this.#sentinels = [...this.#sentinels.slice(1), ...this.#sentinels.slice(0, 1)];
    }
    const primary = await this.locate(new AbortController().signal).catch(() => undefined);
    if (primary !== undefined) this.#dropOthers(hostAndPortText(primary));
    if (this.#followed.size > 0) this.#watch();
  }

  #dropOthers(primary: string): void {
    for (const [stream, { target, epoch }] of this.#followed) {
      // Sentinels that have seen no failover since may write the same server in another way.
      if (target === primary || (this.#epoch !== 0 && this.#epoch <= epoch)) continue;
      stream.destroy(new Error(`the primary is ${primary} now`));
    }
  }

  #isIdle(): boolean {
    return this.#followed.size === 0 && [...this.#waiting].every((signal) => signal.aborted);
  }

  #endSession(): void {
    this.#session?.client.disconnect();
    this.#session = undefined;
  }

  /** In turn; a sentinel that missed a failover is believed only when nobody knows better. */
  async #askAll(): Promise<HostAndPort> {
    const sentinels = this.#sentinels;
    const shareMs = this.#options.timeoutMs / sentinels.length;
    const failures: string[] = [];
    let best: { sentinel: HostAndPort; opinion: Opinion } | undefined;
    for (const sentinel of sentinels) {
      if (this.#isIdle()) break;
      try {
        const opinion = await this.#ask(sentinel, shareMs);
        if (best === undefined || opinion.epoch > best.opinion.epoch) best = { sentinel, opinion };
        if (opinion.epoch === 0 || opinion.epoch >= this.#epoch) break;
      } catch (error) {
        failures.push(
          `${hostAndPortText(sentinel)}: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
    if (best === undefined) throw new Error(`no sentinel knows the primary: ${failures.join("; ")}`);
    this.#learn(best.sentinel, best.opinion);
    return best.opinion.primary;
  }

  #learn(answered: HostAndPort, { epoch, others }: Opinion): void {
    this.#epoch = epoch;
    const all = [answered, ...this.#options.address.sentinels, ...others];
    const byText = new Map(all.map((sentinel) => [hostAndPortText(sentinel), sentinel]));
    this.#sentinels = [...byText.values()].slice(0, MAX_SENTINELS);
  }

  async #ask(sentinel: HostAndPort, limitMs: number): Promise<Opinion> {
    const timeout = Promise.withResolvers<never>();
    const cancel = this.#options.clock.after(
      limitMs,
      () => timeout.reject(new Error(`no answer within ${Math.ceil(limitMs)} ms`)),
    );
    try {
      return await Promise.race([this.#converse(sentinel), timeout.promise]);
    } catch (error) {
      this.#endSession();
      throw error;
    } finally {
      cancel();
    }
  }

  async #converse(sentinel: HostAndPort): Promise<Opinion> {
    const client = await this.#connect(sentinel);
    const { master } = this.#options.address;
    const [address, state, others] = await Promise.allSettled([
      client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", master),
      client.call("SENTINEL", "MASTER", master),
      client.call("SENTINEL", "SENTINELS", master),
    ]);
    if (address.status === "rejected") throw address.reason;
    const primary = hostAndPortOf(address.value);
    if (primary === undefined) throw new Error(`it knows no primary "${master}"`);
    // A user that may ask for the address alone is served too.
    const epoch = state.status === "fulfilled" ? Number(fieldsOf(state.value)["config-epoch"]) || 0 : 0;
    return { primary, epoch, others: others.status === "fulfilled" ? reachable(others.value) : [] };
  }

  async #connect(sentinel: HostAndPort): Promise<Redis> {
    const kept = this.#session;
    if (
      kept !== undefined && hostAndPortText(kept.sentinel) === hostAndPortText(sentinel) &&
      kept.client.status === "ready"
    ) return kept.client;
    this.#endSession();
    const { address, tls, timeoutMs, clock } = this.#options;
    const client = createClient({
      username: address.sentinelUsername,
      password: address.sentinelPassword,
      timeoutMs,
      connector: { locate: () => Promise.resolve(sentinel), tls, timeoutMs, clock, primaryOnly: false },
      // One attempt: the next sentinel is the better one.
      retryStrategy: () => null,
      asksReady: false,
    });
    this.#session = { sentinel, client };
    let reason: Error | undefined;
    client.on("error", (error: Error) => reason ??= error);
    await client.connect().catch((error: unknown) => {
      throw reason ?? error;
    });
    return client;
  }
}

/** The list of a host and a port, which is how a sentinel answers. */
function hostAndPortOf(reply: unknown): HostAndPort | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [host, port] = [String(reply[0]), Number(reply[1])];
  return host !== "" && port > 0 && port < 65_536 ? { host, port } : undefined;
}

function reachable(reply: unknown): HostAndPort[] {
  const sentinels = Array.isArray(reply) ? reply.map(fieldsOf) : [];
  return sentinels
    .filter(({ flags = "" }) => !/\b(?:s_down|o_down|disconnected)\b/.test(flags))
    .map(({ ip, port }) => hostAndPortOf([ip ?? "", port]))
    .filter((sentinel) => sentinel !== undefined);
}

/** A list of names and values, in turn. */
function fieldsOf(reply: unknown): Record<string, string> {
  const fields: Record<string, string> = {};
  if (!Array.isArray(reply)) return fields;
  for (let at = 0; at + 1 < reply.length; at += 2) fields[String(reply[at])] = String(reply[at + 1]);
  return fields;
}
