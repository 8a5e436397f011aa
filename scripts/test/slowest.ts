import { dirname, join } from "node:path";
import { importsOf, scanSource } from "../../tests/harness/source_scan.ts";
import type { TestTime } from "../../tests/harness/test_report.ts";

const MOST_FILES = 30;
const MOST_TESTS = 30;
/** Servers that a test waits for, by the file that it imports, directly or not. */
const STARTED: Readonly<Record<string, string>> = {
  "tests/harness/redis_server.ts": "redis-server",
  "tests/harness/redis_cluster.ts": "redis cluster",
  "tests/harness/redis_sentinel.ts": "redis sentinels",
  "tests/harness/memcached.ts": "memcached",
  "tests/harness/postgres_server.ts": "PostgreSQL",
  "tests/harness/pgbouncer.ts": "PgBouncer",
  "tests/harness/envoy.ts": "Envoy",
  "tests/harness/prometheus.ts": "Prometheus",
  "tests/harness/statsd_exporter.ts": "statsd_exporter",
  "tests/harness/weir_process.ts": "Weir processes",
  "tests/harness/killed_weir.ts": "Weir processes",
  "tests/harness/child_process.ts": "processes",
  "tests/harness/page_browser.ts": "Chromium",
};

/** The slowest files and tests as lines: seconds, what it is, and what the file starts and so waits for. */
export function slowestLines(
  times: readonly TestTime[],
  startedBy: (file: string) => readonly string[],
): string[] {
  const files = new Map<string, number>();
  for (const { file, seconds } of times) files.set(file, (files.get(file) ?? 0) + seconds);
  const slowestFirst = (first: readonly [unknown, number], second: readonly [unknown, number]) =>
    second[1] - first[1];
  const line = (what: string, seconds: number) => `${seconds.toFixed(1).padStart(7)} s  ${what}`;
  const total = times.reduce((sum, { seconds }) => sum + seconds, 0);
  return [
    `slowest files of ${files.size}, ${total.toFixed(0)} s in all:`,
    ...[...files].sort(slowestFirst).slice(0, MOST_FILES).map(([file, seconds]) => {
      const started = startedBy(file);
      return line(started.length === 0 ? file : `${file} (${started.join(", ")})`, seconds);
    }),
    `slowest tests of ${times.length}:`,
    ...times.map(({ file, name, seconds }) => [`${file}: ${name}`, seconds] as const).toSorted(slowestFirst)
      .slice(0, MOST_TESTS).map(([what, seconds]) => line(what, seconds)),
  ];
}

/** Returns a function that names the servers that a test file starts, by its imports. */
export function startedByImports(root: string): (file: string) => string[] {
  return (file) => {
    const seen = new Set<string>();
    const visit = (path: string) => {
      if (seen.has(path)) return;
      seen.add(path);
      for (const specifier of importsOf(scanSource(path, textOf(join(root, path))))) {
        if (specifier.startsWith(".")) visit(join(dirname(path), specifier));
      }
    };
    visit(join(file));
    return [...new Set(Object.entries(STARTED).filter(([path]) => seen.has(path)).map(([, name]) => name))];
  };
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    // An example in the documentation is a test of a file that is none.
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}
