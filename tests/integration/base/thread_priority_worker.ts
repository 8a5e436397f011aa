import os from "node:os";
import { lowerPriority } from "../../../src/threads/thread_priority.ts";

if (import.meta.main) {
  const before = os.getPriority(0);
  const isLower = lowerPriority();
  (globalThis as unknown as Worker).postMessage({ before, isLower, after: os.getPriority(0) });
}
