import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import {
  parsePostgresAddress,
  type PostgresAddress,
  redactedAddress,
} from "../../../base/postgres_address.ts";
import { Credential } from "../../../net/credential.ts";
import { otherAddress, type SecretFile, WatchedSecrets } from "../../../net/watched_secrets.ts";
import { sqlStateOf } from "./error.ts";

/** Options of `openPostgresLogin`. */
interface PostgresLoginOptions {
  /** The setting with the address. */
  readonly file: SecretFile;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The address of a database, whose user and password may be replaced. */
export interface PostgresLogin {
  readonly credential: Credential<PostgresAddress>;
  /** The numbers of changes of the file. */
  readonly metrics: { readonly reloaded: number; readonly rejected: number };
  close(): Promise<void>;
}

/** Reads the address of a file again when it changes, and applies another user or password. */
export function openPostgresLogin({ file, clock, logger }: PostgresLoginOptions): PostgresLogin {
  const first = parsePostgresAddress(file.value);
  const credential = new Credential(first, {
    server: `PostgreSQL ${redactedAddress(first)}`,
    logger,
    onRefused: () => watched.readNow(),
  });
  const watched = new WatchedSecrets({
    files: [file],
    clock,
    logger,
    onChange(values) {
      // Its errors never quote the address.
      const next = parsePostgresAddress(values.get(file.name) ?? "");
      if (placeOf(next) !== placeOf(first)) throw otherAddress();
      credential.replace(next);
    },
  });
  void watched.start();
  return { credential, metrics: watched.metrics, close: () => watched.close() };
}

/** True for an error of a server, or a pooler, that refuses a user or a password. */
export function isLoginRefused(error: unknown): boolean {
  const state = sqlStateOf(error) ?? "";
  // Older poolers report a violation of the protocol.
  return state.startsWith("28") || state === "08P01";
}

/** The address without its credentials. */
function placeOf({ fields }: PostgresAddress): string {
  return JSON.stringify({ ...fields, user: undefined });
}
