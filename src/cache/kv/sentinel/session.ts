import type { Redis } from "ioredis";
import type { Clock } from "../../../base/clock.ts";
import { answeredWithin } from "../../../base/wait.ts";
import type { HostAndPort, KvSentinel } from "../address.ts";
import { createClient, isLoginUnwanted } from "../client.ts";
import type { TlsFiles } from "../../tls_files.ts";

/** How sentinels are asked. */
export interface KvSentinelSessionOptions {
  readonly address: KvSentinel;
  readonly tls: TlsFiles | undefined;
  /** Longest time from asking one to its answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** What a sentinel says. */
export interface KvOpinion {
  readonly sentinel: HostAndPort;
  readonly primary: HostAndPort;
  /** Grows with each failover, from 0 on; absent when the sentinel does not tell. */
  readonly epoch: number | undefined;
  /** Sentinels that it knows of. */
  readonly others: readonly HostAndPort[];
}

/** One sentinel, with a connection that is kept for further questions. */
export class KvSentinelSession {
  readonly sentinel: HostAndPort;
  /** It has not answered in time lately: nobody waits for it who has another answer. */
  late = false;
  readonly #options: KvSentinelSessionOptions;
  #client: Redis | undefined;
  #asking: Promise<KvOpinion> | undefined;

  constructor(sentinel: HostAndPort, options: KvSentinelSessionOptions) {
    this.sentinel = sentinel;
    this.#options = options;
  }

  /** Its opinion now. Everyone who asks while a question is under way gets the answer to that one. */
  ask(): Promise<KvOpinion> {
    return this.#asking ??= this.#askInTime().finally(() => this.#asking = undefined);
  }

  /** Closes the connection; a question that is under way fails. The next question makes another one. */
  end(): void {
    this.#client?.disconnect();
    this.#client = undefined;
  }

  async #askInTime(): Promise<KvOpinion> {
    const { clock, timeoutMs } = this.#options;
    const overdue = () => {
      this.late = true;
      return new Error(`no answer within ${timeoutMs} ms`);
    };
    try {
      const opinion = await answeredWithin(this.#converse(), timeoutMs, clock, overdue);
      this.late = false;
      return opinion;
    } catch (error) {
      this.end();
      throw error;
    }
  }

  async #converse(): Promise<KvOpinion> {
    const client = await this.#connect();
    const { master } = this.#options.address;
    const [address, state, others] = await Promise.allSettled([
      client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", master),
      client.call("SENTINEL", "MASTER", master),
      client.call("SENTINEL", "SENTINELS", master),
    ]);
    if (address.status === "rejected") throw address.reason;
    const primary = hostAndPortOf(address.value);
    if (primary === undefined) throw new Error(`it knows no primary "${master}"`);
    return {
      sentinel: this.sentinel,
      primary,
      // A user that may ask for the address alone is served too.
      epoch: state.status === "fulfilled" ? epochOf(state.value) : undefined,
      others: others.status === "fulfilled" ? reachable(others.value) : [],
    };
  }

  async #connect(): Promise<Redis> {
    if (this.#client?.status === "ready") return this.#client;
    this.end();
    const { tls, timeoutMs, clock } = this.#options;
    const locate = () => Promise.resolve({ target: this.sentinel });
    const client = createClient({
      timeoutMs,
      connector: { locate, tls, timeoutMs, clock, primaryOnly: false },
      // One attempt: the next question makes another one.
      retryStrategy: () => null,
      asksReady: false,
    });
    this.#client = client;
    let reason: Error | undefined;
    client.on("error", (error: Error) => reason ??= error);
    await client.connect().catch((error: unknown) => {
      throw reason ?? error;
    });
    await this.#logIn(client);
    return client;
  }

  /** Before anything else is asked: the refusal of a question would hide that of the login. */
  async #logIn(client: Redis): Promise<void> {
    const { sentinelUsername: username, sentinelPassword: password } = this.#options.address;
    if (password === undefined) return;
    try {
      await client.call("AUTH", ...(username === undefined ? [] : [username]), password);
    } catch (error) {
      if (!(error instanceof Error && isLoginUnwanted(error))) throw error;
    }
  }
}

/** The list of a host and a port, which is how a sentinel answers. */
function hostAndPortOf(reply: unknown): HostAndPort | undefined {
  if (!Array.isArray(reply)) return undefined;
  const [host, port] = [String(reply[0]), Number(reply[1])];
  return host !== "" && port > 0 && port < 65_536 ? { host, port } : undefined;
}

function epochOf(reply: unknown): number | undefined {
  const text = fieldsOf(reply)["config-epoch"] ?? "";
  return /^\d+$/.test(text) ? Number(text) : undefined;
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
