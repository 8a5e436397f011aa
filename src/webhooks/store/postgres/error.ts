import { errorText } from "../../../base/error_text.ts";
import { StoreError } from "../store.ts";
import { ConflictError } from "../work.ts";

/** An error of PostgreSQL, as one of the store. */
export class PostgresError extends StoreError {
  /** The five characters that PostgreSQL names the error with; absent where it has not said anything. */
  readonly sqlState: string | undefined;

  constructor(code: StoreError["code"], message: string, sqlState?: string) {
    super(code, message);
    this.sqlState = sqlState;
  }
}

/** States that are over as such, or with all that begin so. */
const CODES: readonly (readonly [start: string, code: StoreError["code"]])[] = [
  ["53100", "full"],
  ["25006", "read_only"],
  // Resources that somebody else has, connections among them.
  ["53", "busy"],
  ["08", "busy"],
  // Two that stood in each other's way; whoever can, begins anew.
  ["40", "busy"],
  // The server ends, or has ended what took too long, or cannot be used yet.
  ["57", "busy"],
  ["25P03", "busy"],
  ["55P03", "busy"],
  // What a row refers to was removed a moment ago.
  ["23503", "busy"],
  // Somebody has altered the tables, or a pooler has lost what was prepared: a new connection knows better.
  ["0A000", "busy"],
  ["26000", "busy"],
];

/** After these the connection is of no use, even if it is still there. */
const FORGOTTEN = ["26000", "25006"];
const SQL_STATE = /^[0-9A-Z]{5}$/;

/** What the server has said, if it was the server. */
export function sqlStateOf(error: unknown): string | undefined {
  if (error instanceof PostgresError) return error.sqlState;
  // Errors of the network have a code as well, and one of them, EPIPE, has five letters.
  if (!(error instanceof Error && "code" in error && "severity" in error)) return undefined;
  return typeof error.code === "string" && SQL_STATE.test(error.code) ? error.code : undefined;
}

/** Whether the session that gave the error can go on. */
export function endsSession(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === undefined || !(error instanceof Error)) return false;
  return FORGOTTEN.includes(state) || isStalePlan(error, state) ||
    "severity" in error && (error.severity === "FATAL" || error.severity === "PANIC");
}

/** What went wrong, as an error of the store; `isLost` where the connection is gone. */
export function postgresError(what: string, error: unknown, isLost = false): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlStateOf(error);
  const code = state === undefined ? undefined : codeOf(error, state);
  // Neither the rows that the server quotes nor what it was asked is to be found in a log.
  const text = state === undefined ? errorText(error) : `${errorText(error)} (${state})`;
  return new PostgresError(code ?? (isLost ? "busy" : "failed"), `${what}: ${text}`, state);
}

/** Whether an operation has failed only because another was in its way, and nothing of it is left. */
export function isConflict(error: unknown): boolean {
  if (error instanceof ConflictError) return true;
  const state = sqlStateOf(error);
  return state === "40001" || state === "40P01";
}

function codeOf(error: unknown, state: string): StoreError["code"] | undefined {
  if (state === "0A000" && !isStalePlan(error, state)) return undefined;
  return CODES.find(([start]) => state.startsWith(start))?.[1];
}

/** The state stands for all that PostgreSQL cannot do; this is the one that a new connection can. */
function isStalePlan(error: unknown, state: string): boolean {
  return state === "0A000" && errorText(error).includes("cached plan must not change result type");
}
