import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

/** The heap of the JavaScript engine as `name: value` lines, in bytes unless the name says otherwise. */
export function heapText(): string {
  const spaces = getHeapSpaceStatistics().map(({ space_name, space_size, space_used_size }) => ({
    [`space.${space_name}.size`]: space_size,
    [`space.${space_name}.used`]: space_used_size,
  }));
  return lines({
    ...prefixed("memory", Deno.memoryUsage()),
    ...prefixed("heap", getHeapStatistics()),
    ...Object.assign({}, ...spaces),
  });
}

/** The memory of the process and of the machine as `name: value` lines, in bytes. */
export function memoryText(): string {
  return lines({
    ...prefixed("process", Deno.memoryUsage()),
    ...prefixed("machine", Deno.systemMemoryInfo()),
  });
}

function prefixed(prefix: string, figures: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [`${prefix}.${name}`, value]));
}

function lines(figures: Readonly<Record<string, unknown>>): string {
  return Object.entries(figures).map(([name, value]) => `${name}: ${value}\n`).join("");
}
