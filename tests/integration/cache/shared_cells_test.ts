import { assertEquals } from "#assert";
import { SharedMemoryCache } from "../../../src/cache/shared_memory_cache.ts";
import type { Hit } from "../../../src/ratelimit/counter_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const END = 1_700_000_060;
const hit = (key: string): Hit => {
  return { key, addend: 1, windowEnd: END, expiresInSeconds: 60, perSecond: false };
};

Deno.test("shared counters: hits of several threads at the same time are all counted, exactly up to the limit", async () => {
  const cache = new SharedMemoryCache({ maxKeys: 100_000, clock: new FakeClock() });
  cache.add([hit("a")]);
  const [answer] = cache.share([hit("a")]);
  const source = `
    import { SharedCell } from "${import.meta.resolve("../../../src/cache/shared_cells.ts")}";
    onmessage = ({ data: { cells, place, limit, begun } }) => {
      const cell = new SharedCell(cells, place);
      // All begin at the same time.
      Atomics.add(begun, 0, 1);
      while (Atomics.load(begun, 0) < 3);
      let added = 0;
      while (cell.addWithin(limit, 1) !== undefined) added++;
      postMessage(added);
    };`;
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const begun = new Int32Array(new SharedArrayBuffer(4));
  const added = await Promise.all([1, 2, 3].map(async () => {
    const worker = new Worker(address, { type: "module" });
    const { promise, resolve } = Promise.withResolvers<number>();
    worker.onmessage = ({ data }) => resolve(data);
    worker.postMessage({ cells: cache.cells, place: answer?.place, limit: 200_001, begun });
    const count = await promise;
    worker.terminate();
    return count;
  }));
  assertEquals(added.reduce((sum, count) => sum + count, 0), 200_000);
  assertEquals(cache.read([hit("a")]), [200_001]);
  URL.revokeObjectURL(address);
  await cache.close();
});
