import type { Clock } from "../../../base/clock.ts";
import { timeText } from "../../../base/rfc3339.ts";
import { whole, wholeOrNone } from "../rows.ts";
import { DispatchLock } from "../sqlite/dispatch_lock.ts";
import { StoreError } from "../store.ts";
import { get } from "../work.ts";
import type { StoreConnection } from "./connection.ts";

/** How long ending sessions are waited for, and how often they are queried. */
const ENDING_MS = 5_000;
const QUERY_MS = 100;

/** The application name of our sessions unless the address names another. */
const SESSION_NAME = "weir";

/** The last time that has a text. */
const LAST_TIME = 8.64e15;

const SESSIONS = `
  SELECT count(*) AS count FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND application_name IN (?, current_setting('application_name'))`;

const LEASES = `
  SELECT max(lease_until) AS until, CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) AS now FROM (
    SELECT max(lease_until) AS lease_until FROM delivery WHERE claim_id IS NOT NULL
    UNION ALL SELECT max(lease_until) FROM execution WHERE claim_id IS NOT NULL
  ) AS claimed`;

/** Takes the dispatch lock of a database file; throws while a service holds it. */
export function lockedStore(path: string): DispatchLock {
  const lock = DispatchLock.take(path);
  if (lock === undefined) throw inUse(path, "a service uses it");
  return lock;
}

/** Throws while services are connected to a database; a connection may outlast its killed process for a moment. */
export async function refuseSessions(connection: StoreConnection, clock: Clock): Promise<void> {
  for (const end = clock.elapsed() + ENDING_MS;;) {
    const count = whole(await connection.perform(get(SESSIONS, SESSION_NAME)), "count");
    if (count === 0) return;
    if (clock.elapsed() >= end) throw inUse(connection.shown, `${count} connections of services are open`);
    await new Promise<void>((resolve) => clock.after(QUERY_MS, resolve));
  }
}

/** Throws while a claim is held in a database, whose holder may have no visible session. */
export async function refuseClaims(connection: StoreConnection): Promise<void> {
  const row = await connection.perform(get(LEASES));
  const until = row === undefined ? undefined : wholeOrNone(row, "until");
  if (until === undefined || until <= whole(row, "now")) return;
  const state = `a service has claimed work until ${timeText(Math.min(until, LAST_TIME))}`;
  throw inUse(connection.shown, state, " and wait until then");
}

function inUse(shown: string, state: string, more = ""): StoreError {
  return new StoreError("busy", `Cannot move the store "${shown}": ${state}; stop the service first${more}`);
}
