import { errorText } from "../../../base/error_text.ts";
import { StoreError } from "../store.ts";
import { ConflictError } from "../work.ts";

/** An error of PostgreSQL, as one of the store. */
export class PostgresError extends StoreError {
  /** Absent where the server did not respond. */
  readonly sqlState: string | undefined;

  constructor(code: StoreError["code"], message: string, sqlState?: string) {
    super(code, message);
    this.sqlState = sqlState;
  }
}

/** Thrown when no connection of the pool was free in time. */
export class PoolTimeoutError extends StoreError {}

/** SQL states, or what they begin with. */
const CODES: readonly (readonly [start: string, code: StoreError["code"]])[] = [
  ["53100", "full"],
  ["25006", "read_only"],
  // Resources in use by others, such as connections.
  ["53", "busy"],
  ["08", "busy"],
  // A conflict of two transactions.
  ["40", "busy"],
  // The server shuts down, cancelled a statement, or cannot be used yet.
  ["57", "busy"],
  ["25P03", "busy"],
  ["55P03", "busy"],
  // A referenced row was removed a moment ago.
  ["23503", "busy"],
  // The tables were altered, or a pooler lost a prepared statement: a new connection helps.
  ["0A000", "busy"],
  ["26000", "busy"],
];

/** The connection is of no use after these, even if it is open. */
const UNUSABLE = ["26000", "25006"];
const SQL_STATE = /^[0-9A-Z]{5}$/;

/** The SQL state of an error of the server. */
export function sqlStateOf(error: unknown): string | undefined {
  if (error instanceof PostgresError) return error.sqlState;
  // Network errors have a code as well, and EPIPE has five letters.
  if (!(error instanceof Error && "code" in error && "severity" in error)) return undefined;
  return typeof error.code === "string" && SQL_STATE.test(error.code) ? error.code : undefined;
}

/** True if the session of the error cannot continue. */
export function endsSession(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === undefined || !(error instanceof Error)) return false;
  return UNUSABLE.includes(state) || isStalePlan(error, state) ||
    "severity" in error && (error.severity === "FATAL" || error.severity === "PANIC");
}

/** An error as one of the store; `isLost` where the connection is closed. */
export function postgresError(what: string, error: unknown, isLost = false): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlStateOf(error);
  const code = state === undefined ? undefined : codeOf(error, state);
  // Without the rows that the server quotes, and without the statement.
  const text = state === undefined ? errorText(error) : `${errorText(error)} (${state})`;
  return new PostgresError(code ?? (isLost ? "busy" : "failed"), `${what}: ${text}`, state);
}

/** True if an operation failed only because of a concurrent one, and was rolled back. */
export function isConflict(error: unknown): boolean {
  if (error instanceof ConflictError) return true;
  const state = sqlStateOf(error);
  return state === "40001" || state === "40P01";
}

/** States that concern the session or the server, and so all calls alike; after 40003 the group may be committed. */
const COMMON_STATES = ["08", "25", "40003", "53", "57P"];

/** True if the server may have refused a statement of several calls because of one of them. */
export function mayConcernOneCall(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && !COMMON_STATES.some((start) => state.startsWith(start));
}

function codeOf(error: unknown, state: string): StoreError["code"] | undefined {
  if (state === "0A000" && !isStalePlan(error, state)) return undefined;
  return CODES.find(([start]) => state.startsWith(start))?.[1];
}

/** The state covers all that PostgreSQL does not support; this is the case that a new connection can handle. */
function isStalePlan(error: unknown, state: string): boolean {
  return state === "0A000" && errorText(error).includes("cached plan must not change result type");
}
