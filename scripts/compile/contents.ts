/** The program's first module. */
export const ENTRY = "main.ts";

/** Modules that are started as workers: no import leads to them, so they are named here. */
export const WORKERS = [
  "src/threads/bell_worker.ts",
  "src/config/file_provider_worker.ts",
  "src/serve/workers/deciding_thread.ts",
  "src/telemetry/otlp_worker.ts",
  "src/webhooks/service/worker.ts",
] as const;

/** The folder of the web page, which is embedded with all that is in it. */
export const PAGE = "src/ui/page";

/** The licenses of the npm packages in the program, one text that is written when it is made. */
export const LICENSES = "licenses.txt";

/** Parts of npm packages that the program has in it but no module of it imports: paths in the package, by its name. */
export const UNUSED: Readonly<Record<string, RegExp>> = {
  // Names that are not stable yet.
  "@opentelemetry/semantic-conventions": /^dist\/(?:experimental_|index-incubating)/,
  // Bundles for browsers.
  "protobufjs": /^dist\//,
  "yaml": /^browser\//,
};

/** The sources of the program, with the settings of Deno. */
export const SOURCES = [ENTRY, "deno.json", "deno.lock", "src"] as const;
