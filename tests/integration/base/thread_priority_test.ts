import { assertEquals } from "#assert";
import os from "node:os";

Deno.test({
  name: "lowerPriority: only the calling thread gets a lower priority",
  ignore: Deno.build.os !== "linux",
  async fn() {
    // The process of the tests may have a lower priority itself.
    const own = os.getPriority(0);
    const worker = new Worker(new URL("./thread_priority_worker.ts", import.meta.url), { type: "module" });
    try {
      const told = await new Promise((resolve) => {
        worker.onmessage = ({ data }) => resolve(data);
      });
      assertEquals([told, os.getPriority(0)], [{ before: own, isLower: true, after: 10 }, own]);
    } finally {
      worker.terminate();
    }
  },
});
