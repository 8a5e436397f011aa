import { assertRejects } from "#assert";
import { systemClock } from "../../src/base/clock.ts";
import { McCache, type McCacheOptions } from "../../src/cache/mc/cache.ts";
import { type Memcached, startMemcached } from "./memcached.ts";
import { needs } from "./tools.ts";

/** Options of a memcached cache. */
export type McOptions = Partial<McCacheOptions>;

/** A cache over nodes on these ports of the loopback address. */
export function openMc(ports: readonly number[], options: McOptions = {}): McCache {
  const { clock = systemClock } = options;
  return new McCache({
    hosts: ports.map((port) => ({ host: "127.0.0.1", port })),
    maxIdleConnections: 2,
    random: Math.random,
    timeoutMs: 30_000,
    ...options,
    clock,
  });
}

/** Runs with such a cache, which is closed whatever comes of it. */
export async function withMc(
  ports: readonly number[],
  options: McOptions,
  run: (cache: McCache) => Promise<void>,
): Promise<void> {
  const cache = openMc(ports, options);
  try {
    await run(cache);
  } finally {
    await cache.close();
  }
}

/** A test with its own servers and one connected cache over them, in the order of their ports. */
export function testMc(
  servers: number,
  name: string,
  run: (cache: McCache, servers: readonly Memcached[], first: Memcached) => Promise<void>,
  options: McOptions = {},
): void {
  Deno.test({
    ...needs(["memcached"], `mc cache: ${name}`),
    async fn() {
      await using stack = new AsyncDisposableStack();
      const started: Memcached[] = [];
      for (let count = 0; count < servers; count++) started.push(stack.use(await startMemcached()));
      await withMc(started.map(({ port }) => port), options, async (cache) => {
        await cache.ready;
        const [first] = started;
        if (first !== undefined) await run(cache, started, first);
      });
    },
  });
}

/** The error of this class that a call is refused with. */
export async function refusal<T extends Error>(
  ask: () => Promise<unknown>,
  type: abstract new (...args: never[]) => T,
): Promise<T> {
  const error = await assertRejects(ask);
  if (error instanceof type) return error;
  throw new Error("Cannot take the error: it is of another class", { cause: error });
}
