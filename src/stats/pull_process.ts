import process from "node:process";
import type { Families, MetricKind } from "./pull_families.ts";

/** Figures of this process, named as monitoring of processes has them. */
export function addProcessMetrics(families: Families, startedAtSeconds: number): void {
  const { rss, heapTotal, heapUsed, external } = Deno.memoryUsage();
  const { user, system } = process.cpuUsage();
  const figures: readonly (readonly [string, MetricKind, number, string])[] = [
    ["process_resident_memory_bytes", "gauge", rss, "Resident memory of the process."],
    ["process_cpu_seconds_total", "counter", (user + system) / 1e6, "CPU time of the process."],
    ["process_start_time_seconds", "gauge", startedAtSeconds, "Start of the process since the Unix epoch."],
    ["nodejs_heap_size_total_bytes", "gauge", heapTotal, "Size of the JavaScript heap."],
    ["nodejs_heap_size_used_bytes", "gauge", heapUsed, "Used part of the JavaScript heap."],
    ["nodejs_external_memory_bytes", "gauge", external, "Memory outside of the JavaScript heap."],
  ];
  for (const [name, kind, value, help] of figures) families.add({ name, kind, help }, {}, value);
}
