import { assertEquals } from "@std/assert";
import { metricsPart } from "../../../scripts/docs/metrics_part.ts";
import { METRIC_SECTIONS } from "../../../src/serve/metric_groups.ts";

const GROUPS = METRIC_SECTIONS.flatMap(({ groups }) => groups);
/** The store, and what adds the declared metrics of other threads to it. */
const PASSED_ON_BY = /^src\/stats\/(?:store|stats_delta)\.ts$/;
/** Where names of metrics are declared. */
const DECLARED_IN =
  /^src\/(?:cache\/metrics|stats\/declarations|telemetry\/process_metrics|webhooks\/service\/metrics|serve\/(?:metric_groups|certificates|health|listener_metrics|operational_events|webhook_statistics))\.ts$/;
/** Where names of metrics are in examples or read by the page, and kinds of events look like them. */
const NO_METRICS_IN = /^src\/(?:http\/openapi\/|ui\/page\/|webhooks\/model\/operational_event\.ts$)/;

Deno.test("metrics reference: one row of five cells for each declared metric", () => {
  const rows = metricsPart().split("\n").filter((line) => line.startsWith("| `"));
  const declared = GROUPS.flatMap(({ prefix, metrics }) => Object.keys(metrics).map((name) => prefix + name));
  const names = rows.map((row) => row.split("`")[1]?.replace(/\.<(?:\w+)>$/, ""));
  assertEquals(names, declared);
  assertEquals(new Set(declared).size, declared.length);
  assertEquals(rows.filter((row) => row.split(" | ").length !== 5), []);
});

Deno.test("metrics reference: each meaning is one or two sentences", () => {
  const all = GROUPS.flatMap(({ metrics }) => Object.values(metrics));
  assertEquals(all.filter(({ meaning }) => !/^[A-Z0-9].*\.$/.test(meaning)), []);
});

Deno.test("metrics: only declared ones are added to the statistics, and no name is written twice", async () => {
  const files = await sourceFiles();
  const found = files.filter(({ path }) =>
    !PASSED_ON_BY.test(path) && !DECLARED_IN.test(path) && !NO_METRICS_IN.test(path)
  )
    .flatMap(({ path, text }) => {
      const uses = text.matchAll(
        /\b(?:stats|store)\.(?:addCounter|addGauge|timer)\(.*|["`]ratelimit(?:_server)?\.[a-z_]+\..*/g,
      );
      return [...uses].map(([use]) => `${path}: ${use}`);
    });
  assertEquals(found.filter((line) => !line.includes("ratelimit.config.")), []);
});

/** The sources of the program. */
async function sourceFiles(): Promise<{ path: string; text: string }[]> {
  const root = new URL("../../../", import.meta.url);
  const paths = ["main.ts"];
  const folders = ["src"];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const { name, isDirectory } of Deno.readDir(new URL(`${folder}/`, root))) {
      if (isDirectory) folders.push(`${folder}/${name}`);
      else if (name.endsWith(".ts")) paths.push(`${folder}/${name}`);
    }
  }
  return await Promise.all(paths.map(async (path) => {
    return { path, text: await Deno.readTextFile(new URL(path, root)) };
  }));
}
