import { assertEquals } from "#assert";
import { promtool } from "../harness/prometheus.ts";
import { needs } from "../harness/tools.ts";

const FILE = new URL("../../config/deploy/helm/files/grafana-dashboard.json", import.meta.url);

/** A panel as Grafana stores it, as far as it is looked at here. */
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

/** A query whose results mark a time in all graphs. */
interface Annotation {
  readonly name: string;
  readonly expr: string;
  readonly enable: boolean;
  readonly datasource: { readonly uid: string };
}

async function panels(): Promise<readonly Panel[]> {
  return JSON.parse(await Deno.readTextFile(FILE)).panels;
}

async function annotations(): Promise<readonly Annotation[]> {
  return JSON.parse(await Deno.readTextFile(FILE)).annotations.list;
}

Deno.test("dashboard: the first row has single numbers, which fill it, and reloads mark the graphs", async () => {
  const [first, ...others] = await panels();
  const row = others.slice(0, others.findIndex(({ type }) => type === "row"));
  assertEquals(first?.type, "row");
  assertEquals(row.map(({ type, targets = [] }) => [type, targets.length]), row.map(() => ["stat", 1]));
  assertEquals(row.map(({ gridPos: { x, y, w } }) => [x, y, w]), row.map((_, index) => [3 * index, 1, 3]));
  assertEquals(row.length, 8);
  assertEquals((await annotations()).map(({ name, enable }) => [name, enable]), [
    ["Rules loaded", true],
    ["Rules rejected", true],
  ]);
});

Deno.test("dashboard: panels have their own ids, do not overlap, and say what they show", async () => {
  const all = await panels();
  assertEquals(new Set(all.map(({ id }) => id)).size, all.length);
  const cells = all.flatMap(({ gridPos: { x, y, w, h } }) => {
    return Array.from({ length: w * h }, (_, index) => `${x + index % w} ${y + Math.floor(index / w)}`);
  });
  assertEquals(new Set(cells).size, cells.length);
  const graphs = all.filter(({ type }) => type !== "row");
  assertEquals(graphs.filter(({ description = "" }) => description === ""), []);
  assertEquals(graphs.filter(({ targets = [] }) => targets.length === 0), []);
});

Deno.test({
  ...needs(["promtool"], "dashboard: every query is PromQL, and asks the chosen data source"),
  async fn() {
    const targets = [...(await panels()).flatMap(({ targets = [] }) => targets), ...await annotations()];
    assertEquals(targets.filter(({ datasource }) => datasource.uid !== "${datasource}"), []);
    const rules = targets.map(({ expr }, index) => ({
      record: `query:${index}`,
      expr: expr.replaceAll("$__rate_interval", "1m"),
    }));
    const path = await Deno.makeTempFile({ prefix: "weir_dashboard_", suffix: ".yaml" });
    try {
      await Deno.writeTextFile(path, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
      const { code, output } = await promtool(["check", "rules", path]);
      assertEquals(code, 0, output);
    } finally {
      await Deno.remove(path);
    }
  },
});
