import { assertEquals } from "#assert";
import { promtool } from "../harness/prometheus.ts";
import { needs } from "../harness/tools.ts";

const FILE = new URL("../../config/deploy/grafana-dashboard.json", import.meta.url);

/** A panel as Grafana stores it, as far as it is looked at here. */
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

async function panels(): Promise<readonly Panel[]> {
  return JSON.parse(await Deno.readTextFile(FILE)).panels;
}

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
    const targets = (await panels()).flatMap(({ targets = [] }) => targets);
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
