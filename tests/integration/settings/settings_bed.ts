import { assertEquals } from "#assert";
import { dirname, join } from "node:path";
import { FakeClock } from "../../harness/fake_clock.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import type { TcpRelay } from "../../harness/tcp_relay.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

/** Environment variables by name. */
export type Env = Readonly<Record<string, string>>;

/** Limits by the day: a key that is always over, one with room, one with statistics for each value; one by the second. */
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
  - key: quick
    rate_limit: { unit: second, requests_per_unit: 1000 }
`,
};

/** A clock that stands at noon, so that no window ends; with a factor, short limits that no setting changes are longer. */
export function noon(factor = 1): FakeClock {
  return FakeClock.ofMachine({ now: Date.UTC(2026, 0, 1, 12), factor });
}

/** Starts a service with the rules of `SHOP`, at noon. */
export async function startShop(env: Env = {}, clock = noon()): Promise<ServeFixture> {
  return await ServeFixture.start({ env, rules: SHOP, clock });
}

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

/** The status of a call. */
export async function statusOf(service: ServeFixture, ...descriptors: readonly string[]): Promise<number> {
  return (await service.ask(shopRequest(...descriptors))).status;
}

/** The evidence that sets two services apart. */
export interface Comparison<T> {
  /** Settings that both have. */
  readonly env?: Env;
  /** Rule files of both; `SHOP` when absent. */
  readonly rules?: Readonly<Record<string, string>>;
  /** Looks at one of them through its ports or its log. */
  look(service: ServeFixture): T | Promise<T>;
  readonly unset: T;
  readonly set: T;
}

/** Looks at a service without the changed settings and at one with them, one after the other. */
export async function compare<T>(changed: Env, comparison: Comparison<T>): Promise<void> {
  const { env = {}, rules = SHOP, look, unset, set } = comparison;
  const seen: T[] = [];
  for (const more of [{}, changed]) {
    await using service = await ServeFixture.start({ env: { ...env, ...more }, rules, clock: noon(8) });
    seen.push(await look(service));
  }
  assertEquals(seen, [unset, set]);
}

/**
 * Makes steps of these tests. What they share is started before the first of them and has to leave nothing behind after
 * the last; a step cannot be held to that while it goes on.
 */
export function sharedTests<T>(
  { of, tools = [], start, steps }: {
    readonly of: string;
    readonly tools?: readonly Tool[];
    readonly start: (stack: AsyncDisposableStack) => Promise<T>;
    readonly steps: Readonly<Record<string, (shared: T) => Promise<void>>>;
  },
): void {
  Deno.test({
    ...needs(tools, `settings of ${of}`),
    async fn(context) {
      await using stack = new AsyncDisposableStack();
      const shared = await start(stack);
      for (const [name, run] of Object.entries(steps)) {
        await context.step({ name, fn: () => run(shared), sanitizeOps: false, sanitizeResources: false });
      }
    },
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

/** Waits until there are so many connections by this gauge, or the log tells that there is none to `url`. */
export async function tried(service: ServeFixture, gauge: string, url: string): Promise<void> {
  await until("an attempt to connect", async () => {
    const isLogged = service.log.some((line) => line.includes("Cannot reach") && line.includes(url));
    return isLogged || ((await service.stats())[gauge] ?? 0) > 0;
  });
}

/** Waits until so many hits wait for the cache. */
export async function inFlight(service: ServeFixture, hits: number): Promise<void> {
  await eventually(hits, async () => (await service.stats())["ratelimit.cache.in_flight"]);
}

/** Runs `work` while the relay passes nothing on. */
export async function whileStalled<T>(relay: TcpRelay, work: () => Promise<T>): Promise<T> {
  relay.setMode("stall");
  try {
    return await work();
  } finally {
    relay.setMode("relay");
  }
}
