import { assertEquals } from "@std/assert";
import { type Environment, readSettings } from "../../../src/settings/read_settings.ts";
import { chooseSinks } from "../../../src/stats/sinks.ts";

const CHOICES: readonly { name: string; env: Environment; sinks: readonly string[] }[] = [
  { name: "nothing set", env: {}, sinks: ["push"] },
  {
    name: "off",
    env: { DISABLE_STATS: "true", USE_PUSH_STATS: "true", USE_TAGGED_PUSH_STATS: "true" },
    sinks: [],
  },
  { name: "push asked for", env: { USE_PUSH_STATS: "true" }, sinks: ["push"] },
  { name: "no push", env: { USE_PUSH_STATS: "false" }, sinks: ["stdout"] },
  { name: "tagged", env: { USE_TAGGED_PUSH_STATS: "true" }, sinks: ["tagged"] },
  {
    name: "tagged, no push",
    env: { USE_TAGGED_PUSH_STATS: "true", USE_PUSH_STATS: "false" },
    sinks: ["tagged"],
  },
  {
    name: "tagged and push",
    env: { USE_TAGGED_PUSH_STATS: "true", USE_PUSH_STATS: "true" },
    sinks: ["tagged", "push"],
  },
  { name: "pull", env: { USE_PULL_METRICS: "true" }, sinks: [] },
  { name: "pull, no push", env: { USE_PULL_METRICS: "true", USE_PUSH_STATS: "false" }, sinks: [] },
  { name: "pull and push", env: { USE_PULL_METRICS: "true", USE_PUSH_STATS: "true" }, sinks: ["push"] },
  { name: "OTLP", env: { OTEL_METRICS_EXPORTER: "otlp" }, sinks: [] },
  { name: "OTLP and push", env: { OTEL_METRICS_EXPORTER: "otlp", USE_PUSH_STATS: "true" }, sinks: ["push"] },
  {
    name: "pull, tagged and push",
    env: { USE_PULL_METRICS: "true", USE_TAGGED_PUSH_STATS: "true", USE_PUSH_STATS: "true" },
    sinks: ["tagged", "push"],
  },
];

for (const { name, env, sinks } of CHOICES) {
  Deno.test(`sinks: ${name}`, () => {
    const { settings } = readSettings({ BACKEND_TYPE: "memory", ...env });
    assertEquals(chooseSinks(settings), sinks);
  });
}
