import { errorText } from "../base/error_text.ts";
import { isPostgresAddress, parsePostgresAddress } from "../base/postgres_address.ts";
import type { Environment } from "./setting.ts";
import type { CrossRule, Settings } from "./table.ts";

const POSTGRES_ONLY = [
  "WEBHOOK_STORE_POOL_SIZE",
  "WEBHOOK_STORE_CONNECT_TIMEOUT",
  "WEBHOOK_STORE_STATEMENT_TIMEOUT",
  "WEBHOOK_STORE_LOCK_TIMEOUT",
] as const;

/** The rules between the settings of the webhook store. */
export const STORE_RULES: readonly CrossRule[] = [
  { reads: ["WEBHOOK_STORE"], problem: addressProblem },
  {
    reads: ["WEBHOOK_STORE", "WEBHOOK_ENCRYPTION_KEY", "WEBHOOK_ENCRYPTION_KEY_FILE"],
    problem: missingKeyProblem,
  },
];

/** Warnings about settings of PostgreSQL without it; `bad` names settings that could not be read. */
export function storeWarnings(
  { WEBHOOK_STORE: store }: Settings,
  env: Environment,
  bad: ReadonlySet<string>,
): string[] {
  if (bad.has("WEBHOOK_STORE") || (store !== undefined && isPostgresAddress(store))) return [];
  return POSTGRES_ONLY.filter((name) => (env[name] ?? "") !== "" && !bad.has(name))
    .map((name) => `${name} has no effect: WEBHOOK_STORE is not the address of a PostgreSQL`);
}

/** The value is never shown, because it may hold a password. */
function addressProblem({ WEBHOOK_STORE: store }: Settings): string | undefined {
  if (store === undefined || !isPostgresAddress(store)) return undefined;
  try {
    parsePostgresAddress(store);
    return undefined;
  } catch (error) {
    const [, state = ""] = /^[^:]*: (.*)$/s.exec(errorText(error)) ?? [];
    return `Invalid WEBHOOK_STORE (value not shown): ${state}`;
  }
}

/** Instances with separate keys could not decrypt each other's secrets. */
function missingKeyProblem(settings: Settings): string | undefined {
  const { WEBHOOK_STORE: store, WEBHOOK_ENCRYPTION_KEY: keys = [] } = settings;
  if (store === undefined || !isPostgresAddress(store)) return undefined;
  if (keys.length > 0 || settings.WEBHOOK_ENCRYPTION_KEY_FILE !== undefined) return undefined;
  return "Invalid WEBHOOK_STORE (value not shown): WEBHOOK_ENCRYPTION_KEY is not set; expected the same 32 bytes in " +
    "base64 for every instance that shares the store";
}
