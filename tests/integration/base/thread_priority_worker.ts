import os from "node:os";
import { giveWay } from "../../../src/base/thread_priority.ts";

if (import.meta.main) {
  const before = os.getPriority(0);
  const hasGivenWay = giveWay();
  (globalThis as unknown as Worker).postMessage({ before, hasGivenWay, after: os.getPriority(0) });
}
