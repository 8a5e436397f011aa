/** Tests that run in one process, several files at a time. */
export interface TestGroup {
  readonly name: string;
  /** Files and folders that are given to the runner. */
  readonly places: readonly string[];
  /** Permission flags; a unit test has neither the network nor processes. */
  readonly permissions: readonly string[];
  /** Whether it uses the servers that all tests of a run share. */
  readonly isServed: boolean;
  /** How many files run at a time. */
  readonly jobs: number;
}

const UNIT_PLACES: readonly string[] = ["tests/unit", "tests/tidy_test.ts"];
/** Tests with servers and processes, and the examples in the documentation of the HTTP client library. */
const SERVER_PLACES: readonly string[] = ["tests/contract", "tests/integration", "src/rest"];
const UNIT_PERMISSIONS = ["--no-prompt", "--allow-read", "--allow-write", "--allow-env", "--allow-sys"];
const SERVER_PERMISSIONS = ["--allow-all"];
/** Files with servers wait more than they compute. */
const SERVER_JOBS_PER_CORE = 2;

/** Every group of the test task, or those that run the named places, on a machine with so many cores. */
export function planTests(cores: number, named: readonly string[] = []): readonly TestGroup[] {
  const places = named.length === 0 ? [...UNIT_PLACES, ...SERVER_PLACES] : named;
  const unit = places.filter(isUnit);
  const server = places.filter((place) => !isUnit(place));
  const groups = [
    { name: "unit", places: unit, permissions: UNIT_PERMISSIONS, isServed: false, jobs: cores },
    {
      name: "integration",
      places: server,
      permissions: SERVER_PERMISSIONS,
      isServed: true,
      jobs: SERVER_JOBS_PER_CORE * cores,
    },
  ];
  return groups.filter(({ places }) => places.length > 0);
}

/** Whether a place, by its path from the root, holds nothing but tests without network and processes. */
export function isUnit(place: string): boolean {
  const path = place.replace(/^\.\//, "");
  return UNIT_PLACES.some((unit) => path === unit || path.startsWith(`${unit}/`));
}
