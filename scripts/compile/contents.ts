/** The program's first module. */
export const ENTRY = "main.ts";

/** Modules that are started as workers: no import leads to them, so they are named here. */
export const WORKERS = [
  "src/base/folder_events_worker.ts",
  "src/config/file_provider_worker.ts",
  "src/telemetry/tracing_export_worker.ts",
  "src/webhooks/service/worker.ts",
] as const;

/** Folders that are embedded beside the modules, with all that is in them. */
export const FOLDERS = ["proto", "src/ui/page"] as const;

/** What the program is made of, with the settings of Deno that it is made by. */
export const SOURCES = [ENTRY, "deno.json", "deno.lock", "src", "proto"] as const;

/**
 * Folders of npm packages that stay outside, as `package/folder`. The tests of bintrees, which prom-client brings, are
 * lists of numbers in files without an ending: `deno compile` takes those for JavaScript, and its stack overflows.
 */
export const LEFT_OUT = [{ name: "bintrees", folder: "test" }] as const;
