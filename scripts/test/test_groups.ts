/** Tests that run in one process. */
export interface TestGroup {
  readonly name: string;
  /** Files and folders that are given to the runner. */
  readonly places: readonly string[];
  /** Files in these folders that another group runs. */
  readonly ignored: readonly string[];
  /** Permission flags; a unit test has neither the network nor processes. */
  readonly permissions: readonly string[];
  /** Whether it uses the servers that all tests of a run share. */
  readonly isServed: boolean;
  /** How many files run at a time, each in its own thread. */
  readonly jobs: number;
}

const UNIT_PLACES: readonly string[] = ["tests/unit", "tests/tidy_test.ts"];
/** One folder, because Deno 2.9.3 ignores files only in the first that it is given. */
const TESTS = "tests";
const SOAK = "tests/soak";
/** Examples in the documentation of the HTTP client library. */
const EXAMPLES = "src/rest";
/**
 * Deno 2.9.3 closes the descriptor of a unix socket of `node:net` twice. In between, another thread may open a file with
 * that number, and the process ends with a panic. So the files with such sockets run in a process with one thread.
 */
const UNIX_SOCKETS: readonly string[] = [
  "tests/contract/grpc_js_engine_test.ts",
  "tests/contract/kv_cache_test.ts",
  "tests/contract/native_engine_test.ts",
  "tests/integration/cli/client_test.ts",
  "tests/integration/grpc/tls_test.ts",
  "tests/integration/grpc/unix_socket_test.ts",
  "tests/integration/program/descriptors_test.ts",
  "tests/integration/program/grpc_test.ts",
  "tests/integration/program/permissions_test.ts",
  "tests/integration/program/rolling_restart_test.ts",
  "tests/integration/settings/settings_kv_test.ts",
  "tests/integration/settings/settings_service_test.ts",
  "tests/integration/webhooks/postgres_connection_test.ts",
];
const UNIT_PERMISSIONS = ["--no-prompt", "--allow-read", "--allow-write", "--allow-env", "--allow-sys"];
const SERVER_PERMISSIONS = ["--allow-all"];
/** Files with servers wait more than they compute. */
const SERVER_JOBS_PER_CORE = 2;

/** Every group of the test task, or those that run the named places, on a machine with so many cores. */
export function planTests(cores: number, named: readonly string[] = []): readonly TestGroup[] {
  const isWhole = named.length === 0;
  const unit = { permissions: UNIT_PERMISSIONS, isServed: false, ignored: [], jobs: cores };
  const server = { permissions: SERVER_PERMISSIONS, isServed: true };
  const groups = [
    { ...unit, name: "unit", places: isWhole ? UNIT_PLACES : named.filter(isUnit) },
    {
      ...server,
      name: "integration",
      places: isWhole ? [TESTS] : named.filter((place) => !isUnit(place)),
      ignored: isWhole ? [...UNIT_PLACES, SOAK, ...UNIX_SOCKETS] : [],
      jobs: SERVER_JOBS_PER_CORE * cores,
    },
    {
      ...server,
      name: "unix sockets",
      places: isWhole ? [...UNIX_SOCKETS, EXAMPLES] : [],
      ignored: [],
      jobs: 1,
    },
  ];
  return groups.filter(({ places }) => places.length > 0);
}

/** Whether a place, by its path from the root, holds nothing but tests without network and processes. */
export function isUnit(place: string): boolean {
  const path = place.replace(/^\.\//, "");
  return UNIT_PLACES.some((unit) => path === unit || path.startsWith(`${unit}/`));
}
