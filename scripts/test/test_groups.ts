/** Tests that run in a process of their own. */
export interface TestGroup {
  readonly name: string;
  /** Files and folders that are given to the runner. */
  readonly places: readonly string[];
  /** Files in these folders that others run. */
  readonly ignored: readonly string[];
}

/** What runs side by side, and what runs alone after that. */
export interface TestPlan {
  readonly beside: readonly TestGroup[];
  readonly after: readonly TestGroup[];
}

/** What runs unless the arguments say otherwise: the tests, and the examples of the HTTP client library. */
export const PLACES: readonly string[] = ["tests", "src/rest"];

/** Tests that compare times, or that want the machine for themselves; they run after all others. */
const ALONE = [
  /^tests\/integration\/(?:fleet|webhooks)_fairness_test\.ts$/,
  /^tests\/integration\/(?:fleet_clocks|reload_under_load|rolling_delay)_test\.ts$/,
  /^tests\/webhooks\/postgres_pool_test\.ts$/,
];

/**
 * What runs beside the rest, and takes about as long. Much of it is waiting: for leases to end, for processes, for servers
 * that are away. Three groups would keep two cores so busy that deadlines are missed.
 */
const BESIDE: Readonly<Record<string, readonly RegExp[]>> = {
  webhooks: [
    /^tests\/(?:webhooks|cache)\//,
    /^tests\/integration\/(?:fleet|webhooks|rolling|outage|process)_/,
  ],
};

/** Deals the files of tests out to groups; whatever is not named above goes with the rest. */
export function planTests(files: readonly string[]): TestPlan {
  const left = new Set(files);
  const group = (name: string, patterns: readonly RegExp[]): TestGroup[] => {
    const places = [...left].filter((file) => patterns.some((pattern) => pattern.test(file)));
    for (const file of places) left.delete(file);
    return places.length === 0 ? [] : [{ name, places, ignored: [] }];
  };
  const after = group("alone", ALONE);
  const beside = Object.entries(BESIDE).flatMap(([name, patterns]) => group(name, patterns));
  const ignored = files.filter((file) => !left.has(file));
  return { beside: [{ name: "rest", places: PLACES, ignored }, ...beside], after };
}

/** Every file of tests in these folders, by its path from the root. */
export function testFiles(root: string, places: readonly string[] = PLACES): string[] {
  return places.flatMap((place) =>
    Array.from(Deno.readDirSync(`${root}/${place}`)).flatMap(({ name, isDirectory }) => {
      const path = `${place}/${name}`;
      if (isDirectory) return testFiles(root, [path]);
      return name.endsWith("_test.ts") ? [path] : [];
    })
  ).toSorted();
}
