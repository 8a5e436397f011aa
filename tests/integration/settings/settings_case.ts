import { assertEquals } from "@std/assert";
import { dirname, join } from "node:path";
import type { Clock } from "../../../src/base/clock.ts";
import type { SettingName } from "../../../src/settings/table.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { needs, type Tool, toolAvailable } from "../../harness/tools.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

/** A test that changes one setting and sees what that does. */
export interface SettingCase {
  /** What is seen; the name of the test after that of the setting. */
  readonly sees: string;
  /** Programs that the test starts. */
  readonly tools?: readonly Tool[];
  readonly run: () => Promise<void>;
}

/** Tests by the setting that each is about. */
export type SettingCases = Readonly<Partial<Record<SettingName, SettingCase>>>;

/** Environment variables by name. */
export type Env = Readonly<Record<string, string>>;

/** Limits by the day: a key that is always over, one with room, one with statistics for each value. */
export const SHOP = {
  "shop.yaml": `domain: shop
descriptors:
  - key: blocked
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: open
    rate_limit: { unit: day, requests_per_unit: 10 }
  - key: each
    detailed_metric: true
    rate_limit: { unit: day, requests_per_unit: 10 }
`,
};

/** It stands at noon, so that no window ends during a test; what waits for a time waits for a real one. */
export const NOON: Clock = FakeClock.ofMachine({ now: Date.UTC(2026, 0, 1, 12) });

/** The same, with more time for what has a short limit that no setting changes. */
export const SLOW_NOON: Clock = FakeClock.ofMachine({ of: NOON, factor: 8 });

/** A rate limit request with a descriptor for each text `key=value`. */
export function shopRequest(...descriptors: readonly string[]): object {
  return {
    domain: "shop",
    descriptors: descriptors.map((text) => {
      const [key = "", value = ""] = text.split("=");
      return { entries: [{ key, value }] };
    }),
  };
}

/** What two services are compared by. */
export interface Comparison<T> {
  /** Settings that both have. */
  readonly env?: Env;
  /** Rule files of both; `SHOP` when absent. */
  readonly rules?: Readonly<Record<string, string>>;
  /** Of both; `NOON` when absent. */
  readonly clock?: Clock;
  /** Looks at one of them through its ports or its log. */
  look(service: ServeFixture): T | Promise<T>;
  readonly unset: T;
  readonly set: T;
}

/**
 * Looks at a service without the changed settings and at one with them, one after the other. Where the two have nothing
 * else that is set, the one without them is the baseline, which other cases look at as well: a look has keys of its own, and
 * compares statistics with what they were before.
 */
export async function compare<T>(changed: Env, comparison: Comparison<T>): Promise<void> {
  const { env = {}, rules = SHOP, clock = NOON, look, unset, set } = comparison;
  const isPlain = Object.keys(env).length === 0 && rules === SHOP && clock === NOON && BASELINE.isOpen;
  const start = (more: Env) => ServeFixture.start({ env: { ...env, ...more }, rules, clock });
  const lookAt = async (more: Env) => {
    await using service = await start(more);
    return await look(service);
  };
  assertEquals([isPlain ? await look(BASELINE.value) : await lookAt({}), await lookAt(changed)], [
    unset,
    set,
  ]);
}

/** What all tests of a file use: started before the first of them, and ended after the last. */
export class Shared<T> {
  readonly #tools: readonly Tool[];
  readonly #start: (stack: AsyncDisposableStack) => Promise<T>;
  #open: { readonly value: T; readonly stack: AsyncDisposableStack } | undefined;

  constructor(tools: readonly Tool[], start: (stack: AsyncDisposableStack) => Promise<T>) {
    this.#tools = tools;
    this.#start = start;
  }

  /** One that is a single thing. */
  static of<T extends AsyncDisposable>(start: () => Promise<T>, ...tools: readonly Tool[]): Shared<T> {
    return new Shared(tools, async (stack) => stack.use(await start()));
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** What was started. */
  get value(): T {
    if (this.#open === undefined) {
      throw new Error("Cannot use what tests share: their file does not start it");
    }
    return this.#open.value;
  }

  /** Starts it, unless one of its programs is missing: its tests are skipped then. */
  async start(): Promise<void> {
    if (!this.#tools.every(toolAvailable)) return;
    await using stack = new AsyncDisposableStack();
    const value = await this.#start(stack);
    this.#open = { value, stack: stack.move() };
  }

  /** Ends it. */
  async stop(): Promise<void> {
    await this.#open?.stack.disposeAsync();
    this.#open = undefined;
  }
}

/** A service with the rules of `SHOP` and no settings. */
export const BASELINE = Shared.of(() => ServeFixture.start({ rules: SHOP, clock: NOON }));

/**
 * Makes a test of these cases, each of which is a step. What they share is started in its order before the first of them, and
 * has to leave nothing behind after the last; a step cannot be held to that while it goes on.
 */
export function testCases(of: string, cases: SettingCases, ...shared: readonly Shared<unknown>[]): void {
  Deno.test(`settings of ${of}`, async (context) => {
    await using stack = new AsyncDisposableStack();
    for (const one of shared) {
      await one.start();
      stack.defer(() => one.stop());
    }
    for (const [name, { sees, tools = [], run }] of Object.entries(cases)) {
      const step = needs(tools, `setting ${name}: ${sees}`);
      await context.step({ ...step, fn: run, sanitizeOps: false, sanitizeResources: false });
    }
  });
}

/** Runs `work` with a new folder that holds these files by their path, and removes it afterwards. */
export async function withFolder(
  files: Readonly<Record<string, string>>,
  work: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_settings_" });
  try {
    for (const [path, text] of Object.entries(files)) {
      const place = join(folder, path);
      await Deno.mkdir(dirname(place), { recursive: true });
      await Deno.writeTextFile(place, text);
    }
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
