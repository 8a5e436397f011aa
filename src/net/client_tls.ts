import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { readAuthorities, readTlsPair, type TlsPairReading } from "./tls_files.ts";
import { allEnded } from "../base/wait.ts";

/** The PEM files of a client, or the settings that name them. */
export interface ClientTlsFiles {
  /** The certificate and its key: both or none. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The authorities of the server. */
  readonly ca?: string | undefined;
}

/** The certificate that a client shows, and the authorities that it trusts. */
interface ClientTls {
  readonly pair: TlsPairReading | undefined;
  readonly authorities: readonly string[] | undefined;
}

/** The log for files that keep their last good content. */
export type TlsFileLog = Pick<Logger, "warning">;

/** By setting and path, which are few and never change. */
const pairs = new Map<string, LastGood<TlsPairReading>>();
const authorities = new Map<string, LastGood<readonly string[]>>();

/**
 * Reads the files of a client as they are now, for each connection, since short-lived certificates are replaced. Files
 * that cannot be used keep the content that was good last, which is logged; without one it rejects with the setting
 * and the path.
 */
export async function readClientTls(
  { cert, key, ca }: ClientTlsFiles,
  names: Readonly<Record<keyof ClientTlsFiles, string>>,
  log?: TlsFileLog,
): Promise<ClientTls> {
  const [pair, trusted] = await allEnded([
    cert === undefined || key === undefined
      ? undefined
      : keeperOf(pairs, names.cert, [cert, key]).read(() => readTlsPair({ cert, key }, names), log),
    ca === undefined
      ? undefined
      : keeperOf(authorities, names.ca, [ca]).read(() => readAuthorities(names.ca, ca), log),
  ]);
  return { pair, authorities: trusted };
}

/** The last good value of something that is read again and again. */
class LastGood<T> {
  readonly #setting: string;
  /** Concurrent callers share a read: on a file system that hangs each one blocks a thread. */
  #reading: Promise<T> | undefined;
  #last: { readonly value: T } | undefined;
  /** The problem that was logged. */
  #problem: string | undefined;

  constructor(setting: string) {
    this.#setting = setting;
  }

  read(readNow: () => Promise<T>, log: TlsFileLog | undefined): Promise<T> {
    return this.#reading ??= this.#read(readNow, log).finally(() => this.#reading = undefined);
  }

  async #read(readNow: () => Promise<T>, log: TlsFileLog | undefined): Promise<T> {
    try {
      const value = await readNow();
      if (this.#problem !== undefined) {
        log?.warning("TLS files can be used again", { setting: this.#setting });
      }
      this.#problem = undefined;
      this.#last = { value };
      return value;
    } catch (error) {
      if (this.#last === undefined) throw error;
      const problem = errorText(error);
      if (problem !== this.#problem) {
        const fields = { setting: this.#setting, reason: problem };
        log?.warning("TLS files cannot be used; keeping their last good content", fields);
      }
      this.#problem = problem;
      return this.#last.value;
    }
  }
}

function keeperOf<T>(
  keepers: Map<string, LastGood<T>>,
  setting: string,
  paths: readonly string[],
): LastGood<T> {
  const id = JSON.stringify([setting, ...paths]);
  const keeper = keepers.get(id) ?? new LastGood<T>(setting);
  keepers.set(id, keeper);
  return keeper;
}
