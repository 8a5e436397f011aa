import { CacheConnection, type Reply } from "./cache_connection.ts";

/** Counters that are asked for at once. */
const BATCH = 1_000;

/** The sum of all counters in the redis-server on this port: SCAN for the keys, GET for the counts. */
export async function sumInRedis(port: number): Promise<number> {
  using server = await CacheConnection.open(port);
  // SCAN may name a key more than once.
  const keys = new Set<string>();
  let cursor = "0";
  do {
    const reply = await server.ask("SCAN", cursor, "COUNT", BATCH);
    if (!Array.isArray(reply) || !Array.isArray(reply[1])) throw unexpected(reply);
    for (const key of reply[1]) keys.add(String(key));
    cursor = String(reply[0]);
  } while (cursor !== "0");
  let sum = 0;
  // One GET a key, because a node of a cluster refuses an MGET over several slots.
  for (const part of batches([...keys])) {
    for (const count of await server.askAll(part.map((key) => ["GET", key]))) {
      if (typeof count !== "string") throw unexpected(count);
      sum += Number(count);
    }
  }
  return sum;
}

/** The sum of all counters in the memcached on this port. */
export async function sumInMemcached(port: number): Promise<number> {
  using server = await CacheConnection.open(port);
  const [dump = ""] = await server.exchange("lru_crawler metadump all\r\n", 1, untilEnd);
  const keys = [...dump.matchAll(/^key=(\S+)/gm)].map(([, key = ""]) => decodeURIComponent(key));
  let sum = 0;
  for (const part of batches([...new Set(keys)])) {
    const [text = ""] = await server.exchange(`get ${part.join(" ")}\r\n`, 1, untilEnd);
    const counts = [...text.matchAll(/^VALUE .*\r\n(\d+) *\r$/gm)].map(([, count]) => Number(count));
    if (counts.length !== part.length) throw unexpected(`${counts.length} counts of ${part.length} keys`);
    sum += counts.reduce((total, count) => total + count, 0);
  }
  return sum;
}

/** An answer of several lines of which the last one is END. */
function untilEnd(text: string, start: number): { reply: string; end: number } | undefined {
  if (start < text.length && !text.endsWith("END\r\n")) {
    const problem = /^(?:[A-Z]*ERROR|BUSY)\b.*(?=\r\n)/.exec(text.slice(start));
    if (problem !== null) throw new Error(`it answered "${problem[0]}"`);
    return undefined;
  }
  return start < text.length ? { reply: text.slice(start), end: text.length } : undefined;
}

function batches(keys: readonly string[]): string[][] {
  return Array.from(
    { length: Math.ceil(keys.length / BATCH) },
    (_, index) => keys.slice(index * BATCH, (index + 1) * BATCH),
  );
}

function unexpected(reply: Reply): Error {
  return new Error(
    `Cannot use reply of cache server "${JSON.stringify(reply)}": it is not what the command answers`,
  );
}
