import { assertEquals } from "#assert";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { chooseSinks } from "../../../src/stats/sinks.ts";

/** Settings, and the sinks by them. */
const CHOICES: readonly (readonly [settings: string, ...sinks: string[]])[] = [
  ["", "push"],
  ["DISABLE_STATS=true USE_PUSH_STATS=true USE_TAGGED_PUSH_STATS=true"],
  ["USE_PUSH_STATS=true", "push"],
  ["USE_PUSH_STATS=false", "stdout"],
  ["USE_TAGGED_PUSH_STATS=true", "tagged"],
  ["USE_TAGGED_PUSH_STATS=true USE_PUSH_STATS=false", "tagged"],
  ["USE_TAGGED_PUSH_STATS=true USE_PUSH_STATS=true", "tagged", "push"],
  ["USE_PULL_METRICS=true"],
  ["USE_PULL_METRICS=true USE_PUSH_STATS=false"],
  ["USE_PULL_METRICS=true USE_PUSH_STATS=true", "push"],
  ["OTEL_METRICS_EXPORTER=otlp"],
  ["OTEL_METRICS_EXPORTER=otlp USE_PUSH_STATS=true", "push"],
  ["USE_PULL_METRICS=true USE_TAGGED_PUSH_STATS=true USE_PUSH_STATS=true", "tagged", "push"],
];

for (const [given, ...sinks] of CHOICES) {
  Deno.test(`sinks: ${given || "nothing set"}`, () => {
    const env = Object.fromEntries(given.split(" ").filter(Boolean).map((one) => one.split("=")));
    assertEquals<readonly string[]>(
      chooseSinks(readSettings({ BACKEND_TYPE: "memory", ...env }).settings),
      sinks,
    );
  });
}
