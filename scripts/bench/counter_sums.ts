import type { Memcached } from "../../tests/harness/memcached.ts";
import { redisCommand, redisCommands } from "../../tests/harness/redis_command.ts";

/** Counters that are asked for at the same time. */
const BATCH = 1_000;

/** The sum of all counters in the redis-server on this port: SCAN for the keys, GET for the counts. */
export async function sumInRedis(port: number): Promise<number> {
  // SCAN may name a key more than once.
  const keys = new Set<string>();
  let cursor = "0";
  do {
    const reply = String(await redisCommand(["SCAN", cursor, "COUNT", String(BATCH)], { port }));
    const [next = "0", ...found] = reply.split("\n").filter((line) => line !== "");
    for (const key of found) keys.add(key);
    cursor = next;
  } while (cursor !== "0");
  let sum = 0;
  // One GET a key, because a node of a cluster refuses an MGET over several slots.
  for (const part of batches([...keys])) {
    const counts = await redisCommands(part.map((key) => ["GET", key]), { port });
    sum += sumOf(counts.map((count) => count ?? ""), part);
  }
  return sum;
}

/** The sum of all counters in a memcached. */
export async function sumInMemcached(server: Pick<Memcached, "command" | "keys">): Promise<number> {
  let sum = 0;
  for (const part of batches(await server.keys())) {
    const lines = await server.command(`get ${part.join(" ")}`);
    sum += sumOf(lines.filter((_, index) => lines[index - 1]?.startsWith("VALUE ") === true), part);
  }
  return sum;
}

function batches(keys: readonly string[]): string[][] {
  return Array.from(
    { length: Math.ceil(keys.length / BATCH) },
    (_, index) => keys.slice(index * BATCH, (index + 1) * BATCH),
  );
}

/** Throws unless there is a count of every key. */
function sumOf(counts: readonly (string | number)[], keys: readonly string[]): number {
  const bad = counts.find((count) => !/^\d+ *$/.test(String(count)));
  if (bad === undefined && counts.length === keys.length) {
    return counts.reduce((sum: number, count) => sum + Number(count), 0);
  }
  throw new Error(
    `Cannot add counters up: ${counts.length} counts of ${keys.length} keys, one is "${bad ?? ""}"`,
  );
}
