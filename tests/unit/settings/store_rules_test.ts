import { assert, assertEquals } from "@std/assert";
import { type Environment, readSettings, SettingsError } from "../../../src/settings/read_settings.ts";

const KEY = new Uint8Array(32).fill(7).toBase64();
const SECRET = "hunter2";
const WEBHOOK_STORE = `postgres://weir:${SECRET}@db.example:5432/weir`;
const NOT_SHOWN = "Invalid WEBHOOK_STORE (value not shown):";
const FORMS = `${NOT_SHOWN} expected the path of a file, or postgres://user:password@host:port/database`;
const NO_KEY =
  `${NOT_SHOWN} WEBHOOK_ENCRYPTION_KEY is not set; expected the same 32 bytes in base64 for every ` +
  "instance that shares the store";
const NO_PORT = `${NOT_SHOWN} expected a port from 1 to 65535 (write a / or ? in a password as %2F or %3F)`;
const NO_USER = `${NOT_SHOWN} expected a user, as in postgres://user:password@host/database`;

interface StoreCase {
  readonly name: string;
  readonly env: Environment;
  readonly problems?: readonly string[];
  readonly warnings?: readonly string[];
}

const CASES: readonly StoreCase[] = [
  { name: "a path", env: { WEBHOOK_STORE: "data/weir.db" } },
  { name: "a path with a colon and an @", env: { WEBHOOK_STORE: "data:1/weir@2.db" } },
  { name: "an address and a key", env: { WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY } },
  {
    name: "the other word, several hosts and parameters",
    env: {
      WEBHOOK_STORE: `postgresql://weir:${SECRET}@a:1,b:2/weir?sslmode=require`,
      WEBHOOK_ENCRYPTION_KEY: `${KEY},${KEY}`,
    },
  },
  { name: "an address and a key file", env: { WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY_FILE: "/run/weir.key" } },
  { name: "an address without a key", env: { WEBHOOK_STORE }, problems: [NO_KEY] },
  { name: "an empty list of keys", env: { WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: "," }, problems: [NO_KEY] },
  {
    name: "an address that is wrong",
    env: { WEBHOOK_STORE: `postgres://weir:${SECRET}@db:port/weir`, WEBHOOK_ENCRYPTION_KEY: KEY },
    problems: [NO_PORT],
  },
  {
    name: "a password with a /",
    env: { WEBHOOK_STORE: `postgres://weir:hun/${SECRET}@db/weir`, WEBHOOK_ENCRYPTION_KEY: KEY },
    problems: [NO_USER],
  },
  {
    name: "another database",
    env: { WEBHOOK_STORE: `mysql://weir:${SECRET}@db/weir` },
    problems: [FORMS],
  },
  { name: "capitals", env: { WEBHOOK_STORE: `POSTGRES://weir:${SECRET}@db/weir` }, problems: [FORMS] },
  {
    name: "settings of a PostgreSQL with one",
    env: { WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY, WEBHOOK_STORE_POOL_SIZE: "3" },
  },
  {
    name: "settings of a PostgreSQL with a file",
    env: {
      WEBHOOK_STORE: "weir.db",
      WEBHOOK_STORE_LOCK_TIMEOUT: "1s",
      WEBHOOK_STORE_POOL_SIZE: "3",
    },
    warnings: ["POOL_SIZE", "LOCK_TIMEOUT"].map((name) =>
      `WEBHOOK_STORE_${name} has no effect: WEBHOOK_STORE is not a PostgreSQL address`
    ),
  },
];

for (const { name, env, problems = [], warnings = [] } of CASES) {
  Deno.test(`store of webhooks: ${name}`, () => {
    const told = toldOf(env);
    assertEquals(told, { problems, warnings });
    assert(!JSON.stringify(told).includes(SECRET), "the password is not shown");
  });
}

function toldOf(env: Environment): { problems: readonly string[]; warnings: readonly string[] } {
  try {
    return { problems: [], warnings: readSettings({ BACKEND_TYPE: "memory", ...env }).warnings };
  } catch (error) {
    if (error instanceof SettingsError) return { problems: [...error.problems], warnings: [] };
    throw error;
  }
}
