import { join } from "node:path";

/** Tests that run in one process. */
export interface TestGroup {
  readonly name: string;
  /** Test files, and folders with examples. */
  readonly places: readonly string[];
  /** Flags of the runner. A unit test has no permission for the network and for processes, and a guard against the rest. */
  readonly flags: readonly string[];
  /** True if it uses the servers that all tests of a run share. */
  readonly isServed: boolean;
  /** Number of modules that run at a time, each in its own thread. */
  readonly jobs: number;
  /** Number of test files that are loaded as one module, which loads their imports once. */
  readonly filesPerModule: number;
}

const UNIT_PLACES: readonly string[] = ["tests/unit", "tests/tidy_test.ts"];
/** Folders of tests that need programs which no other tier needs, and have their own task. */
const OWN_TASKS = ["deploy", "runtimes"] as const;
type OwnTask = (typeof OWN_TASKS)[number];
/** Folders that the task runs when none is named; the others have their own tasks. */
const TIERS: readonly string[] = [...UNIT_PLACES, "tests/contract", "tests/integration"];
/** Examples in the documentation of the HTTP client library. */
const EXAMPLES = "src/rest";
const UNIT_FLAGS = [
  "--preload=tests/harness/unit_guard.ts",
  "--no-prompt",
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-sys",
];
const SERVER_FLAGS = ["--allow-all"];
/** Files with servers wait more than they compute. */
const SERVER_JOBS_PER_CORE = 3;
const UNIT_FILES_PER_MODULE = 24;
const SERVER_FILES_PER_MODULE = 4;

/** The test files at these paths from the root, or those of every tier, sorted; files and examples stay as they are. */
export function testPlaces(root: string, named: readonly string[]): string[] {
  // The examples of its README have their own test, which answers their requests.
  if (named.length === 0) {
    return [...testPlaces(root, TIERS), ...filesBelow(root, EXAMPLES, /(?<!_test)\.ts$/)];
  }
  return [
    ...new Set(named.flatMap((place) => {
      const files = filesBelow(root, place, /_test\.ts$/);
      return files.length === 0 ? [place] : files;
    })),
  ].sort();
}

function filesBelow(root: string, place: string, name: RegExp): string[] {
  if (!Deno.statSync(join(root, place)).isDirectory) return [place];
  const entries = [...Deno.readDirSync(join(root, place))];
  return entries.flatMap((entry) => {
    if (entry.isDirectory) return filesBelow(root, join(place, entry.name), name);
    return name.test(entry.name) ? [join(place, entry.name)] : [];
  });
}

/** The groups that run these places on a machine with so many cores. */
export function planTests(cores: number, places: readonly string[]): readonly TestGroup[] {
  const server = { flags: SERVER_FLAGS, isServed: true };
  const isExample = (place: string) => place.startsWith(`${EXAMPLES}/`);
  const groups = [
    {
      name: "unit",
      places: places.filter(isUnit),
      flags: UNIT_FLAGS,
      isServed: false,
      jobs: cores,
      filesPerModule: UNIT_FILES_PER_MODULE,
    },
    {
      ...server,
      name: "integration",
      places: places.filter((place) => !isUnit(place) && !isExample(place)),
      jobs: SERVER_JOBS_PER_CORE * cores,
      filesPerModule: SERVER_FILES_PER_MODULE,
    },
    { ...server, name: "examples", places: places.filter(isExample), jobs: 1, filesPerModule: 1 },
  ];
  return groups.filter(({ places }) => places.length > 0);
}

/** Returns whether a path from the root holds only tests without network and processes. */
export function isUnit(place: string): boolean {
  return UNIT_PLACES.some((unit) => place === unit || place.startsWith(`${unit}/`));
}

/** The tasks whose tests, with their own programs, are among these paths from the root. */
export function ownTasks(places: readonly string[]): readonly OwnTask[] {
  return OWN_TASKS.filter((task) => places.some((place) => `${place}/`.startsWith(`tests/${task}/`)));
}
