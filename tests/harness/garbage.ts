import v8 from "node:v8";
import vm from "node:vm";

/** Collects all garbage. */
export function collectGarbage(): void {
  v8.setFlagsFromString("--expose-gc");
  const collect: () => void = vm.runInNewContext("gc");
  collect();
}

/** Collects all garbage and returns the memory in use, in megabytes. */
export function heapMegabytes(): number {
  collectGarbage();
  return Deno.memoryUsage().heapUsed / 1_000_000;
}
