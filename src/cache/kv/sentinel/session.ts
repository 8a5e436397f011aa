import type { Clock } from "../../../base/clock.ts";
import type { HostAndPort } from "../../../base/host_port.ts";
import { withTimeout } from "../../../base/wait.ts";
import type { Credential } from "../../../net/credential.ts";
import type { TlsFiles } from "../../tls_files.ts";
import type { KvLogin, KvSentinel } from "../address.ts";
import { noAnswer } from "../../server_connection.ts";
import type { KvConnection } from "../connection.ts";
import { openKvSession } from "../greeting.ts";

/** Options of the connections to sentinels. */
export interface KvSentinelSessionOptions {
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly address: KvSentinel;
  readonly login: Credential<KvLogin>;
  readonly tls: TlsFiles | undefined;
}

/** The report of a sentinel. */
export interface KvOpinion {
  readonly sentinel: HostAndPort;
  readonly primary: HostAndPort;
  /** Grows with each failover, from 0 on; absent when the sentinel does not report it. */
  readonly epoch: number | undefined;
  /** Sentinels that it knows of. */
  readonly others: readonly HostAndPort[];
}

/** One sentinel, with a connection that is kept for further questions. */
export class KvSentinelSession {
  readonly sentinel: HostAndPort;
  /** It did not answer in time lately, so that other answers are enough. */
  isLate = false;
  readonly #options: KvSentinelSessionOptions;
  #connection: KvConnection | undefined;
  #opening = new AbortController();
  #asking: Promise<KvOpinion> | undefined;

  constructor(sentinel: HostAndPort, options: KvSentinelSessionOptions) {
    this.sentinel = sentinel;
    this.#options = options;
  }

  /** Its opinion now. Questions at the same time share one answer. */
  ask(): Promise<KvOpinion> {
    return this.#asking ??= this.#askInTime().finally(() => this.#asking = undefined);
  }

  /** Closes the connection; a question in flight fails. The next question makes another connection. */
  end(): void {
    this.#opening.abort(new Error("the connection was closed"));
    this.#connection?.close("the connection was closed");
    this.#connection = undefined;
  }

  async #askInTime(): Promise<KvOpinion> {
    const { clock, timeoutMs } = this.#options;
    const timedOut = () => {
      this.isLate = true;
      return new Error(noAnswer(timeoutMs));
    };
    try {
      const opinion = await withTimeout(this.#converse(), timeoutMs, clock, timedOut);
      this.isLate = false;
      return opinion;
    } catch (error) {
      this.end();
      throw error;
    }
  }

  async #converse(): Promise<KvOpinion> {
    const { master } = this.#options.address;
    const connection = this.#connection?.isUsable === true ? this.#connection : await this.#connect();
    const [address, state, others] = await Promise.allSettled([
      connection.command(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", master]),
      connection.command(["SENTINEL", "MASTER", master]),
      connection.command(["SENTINEL", "SENTINELS", master]),
    ]);
    if (address.status === "rejected") throw address.reason;
    const primary = hostAndPortOf(address.value);
    if (primary === undefined) throw new Error(`it knows no primary "${master}"`);
    return {
      sentinel: this.sentinel,
      primary,
      // A user that may ask for the address alone is enough.
      epoch: state.status === "fulfilled" ? epochOf(state.value) : undefined,
      others: others.status === "fulfilled" ? reachable(others.value) : [],
    };
  }

  async #connect(): Promise<KvConnection> {
    const locate = () => Promise.resolve({ target: this.sentinel });
    const opening = this.#opening = new AbortController();
    return this.#connection = await openKvSession(
      { ...this.#options, locate },
      () => {},
      opening.signal,
    );
  }
}

/** A list of a host and a port. */
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

/** The fields of a list of names and values, in turn. */
function fieldsOf(reply: unknown): Record<string, string> {
  const fields: Record<string, string> = {};
  if (!Array.isArray(reply)) return fields;
  for (let at = 0; at + 1 < reply.length; at += 2) fields[String(reply[at])] = String(reply[at + 1]);
  return fields;
}
