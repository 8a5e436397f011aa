import { assertEquals } from "@std/assert";
import { dirname, join } from "node:path";
import { type Clock } from "../../../src/base/clock.ts";
import type { SettingName } from "../../../src/settings/table.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { scaledClock } from "../../harness/scaled_clock.ts";
import type { Tool } from "../../harness/tools.ts";

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
export const NOON: Clock = scaledClock({ now: Date.UTC(2026, 0, 1, 12) });

/** The same, with more time for what has a short limit that no setting changes. */
export const SLOW_NOON: Clock = scaledClock({ of: NOON, factor: 8 });

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

/** Looks at a service without the changed settings and at one with them, one after the other. */
export async function compare<T>(changed: Env, comparison: Comparison<T>): Promise<void> {
  const { env = {}, rules = SHOP, clock = NOON, look, unset, set } = comparison;
  const seen: T[] = [];
  for (const extra of [{}, changed]) {
    await using service = await ServeFixture.start({ env: { ...env, ...extra }, rules, clock });
    seen.push(await look(service));
  }
  assertEquals(seen, [unset, set]);
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
