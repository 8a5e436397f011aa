import { MAY_IMPORT } from "../../tests/harness/tidy_rules.ts";

/** The part of the program that a folder belongs to. */
type Part = "limits" | "webhooks" | "client" | "shared";

/** Every folder of `src`, with its part and its job in two short lines. */
const FOLDERS: Readonly<Record<string, readonly [part: Part, first: string, second: string]>> = {
  serve: ["shared", "one file per component,", "in the order of the start"],
  cli: ["shared", "the commands", "of weir"],
  ui: ["shared", "the web page", ""],
  load: ["limits", "the load generator", "of weir bench"],
  http: ["shared", "server, routes and", "OpenAPI document"],
  grpc: ["limits", "services, engines", "and client"],
  webhooks: ["webhooks", "triggers, workflows,", "events and deliveries"],
  config: ["limits", "rules from files", "and from xDS"],
  cache: ["limits", "counters in memory,", "redis and memcached"],
  quota: ["limits", "shares of a limit", "among Envoys"],
  ratelimit: ["limits", "the decisions;", "no I/O and no clock"],
  telemetry: ["shared", "logs and traces", ""],
  stats: ["shared", "metrics and", "their receivers"],
  settings: ["shared", "the table of all", "variables"],
  rest: ["client", "the HTTP client", "library"],
  net: ["shared", "connections, TLS and", "the way to other hosts"],
  threads: ["shared", "workers, leases and", "changed files"],
  yaml: ["shared", "YAML with", "positions"],
  wire: ["limits", "protobuf bytes to", "plain objects"],
  base: ["shared", "clock, log port", "and waits"],
};
const LEGEND: Readonly<Record<Part, string>> = {
  limits: "rate limit decisions",
  webhooks: "webhooks and workflows",
  client: "HTTP client library",
  shared: "used by several",
};
const WIDTH = 960;
const BOX = { width: 150, height: 62, gap: 8, pitch: 78 } as const;
const TOP = 44;
const STYLE = "text{font:11px system-ui,sans-serif;fill:#59636e;text-anchor:middle}" +
  ".name{font:600 14px ui-monospace,monospace;fill:#1f2328}.key{text-anchor:start;font-size:13px;fill:#1f2328}" +
  "rect{fill:#f6f8fa;stroke-width:1.5}.limits{stroke:#2f81f7}.webhooks{stroke:#8957e5}.client{stroke:#d1682b}" +
  ".shared{stroke:#9198a1}@media(prefers-color-scheme:dark){rect{fill:#161b22}text{fill:#9198a1}" +
  ".name,.key{fill:#e6edf3}}";

/** A picture of the folders of `src`: each imports only folders below its row. */
export function houseSvg(): string {
  const rows = rowsOf(importsOf());
  const height = TOP + rows.length * BOX.pitch;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="` +
    `The folders of src, each above those that it imports: ${rows.map((row) => row.join(", ")).join("; ")}">`,
    `<style>${STYLE}</style>`,
    ...Object.entries(LEGEND).flatMap(([part, meaning], index) => {
      const x = 8 + index * 200;
      return [
        `<rect class="${part}" x="${x}" y="10" width="14" height="14" rx="3"/>`,
        `<text class="key" x="${x + 22}" y="22">${meaning}</text>`,
      ];
    }),
    ...rows.flatMap((row, index) => rowOf(row, TOP + index * BOX.pitch)),
    "</svg>\n",
  ].join("\n");
}

function rowOf(folders: readonly string[], y: number): string[] {
  const total = folders.length * (BOX.width + BOX.gap) - BOX.gap;
  return folders.flatMap((folder, index) => {
    const x = (WIDTH - total) / 2 + index * (BOX.width + BOX.gap);
    const [part, first, second] = FOLDERS[folder] ?? ["shared", "", ""];
    const middle = x + BOX.width / 2;
    return [
      `<rect class="${part}" x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6"/>`,
      `<text class="name" x="${middle}" y="${y + 22}">${folder}</text>`,
      `<text x="${middle}" y="${y + 38}">${first}</text>`,
      ...second === "" ? [] : [`<text x="${middle}" y="${y + 52}">${second}</text>`],
    ];
  });
}

/** The folders that each folder of `src` may import. */
function importsOf(): Map<string, ReadonlySet<string>> {
  const names = new Set(Object.keys(MAY_IMPORT).map(topOf));
  const described = Object.keys(FOLDERS);
  const wrong = [...names].filter((name) => !described.includes(name)).concat(
    described.filter((name) => !names.has(name)),
  );
  if (wrong.length > 0) {
    throw new Error(`Cannot draw the folders of src: FOLDERS differs in ${wrong.join(", ")}`);
  }
  return new Map([...names].map((name) => {
    const rules = Object.entries(MAY_IMPORT).filter(([folder]) => topOf(folder) === name);
    const imported = rules.flatMap(([, paths]) => paths).map((path) =>
      path === "" ? [...names] : [topOf(path)]
    );
    return [name, new Set(imported.flat().filter((other) => other !== name))];
  }));
}

/** The folders in rows, each as low as what it imports allows; those that import nothing are the last row. */
function rowsOf(imports: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const heightOf = (name: string, path: readonly string[] = []): number => {
    const below = [...imports.get(name) ?? []].filter((other) => !path.includes(other));
    return Math.max(0, ...below.map((other) => 1 + heightOf(other, [...path, name])));
  };
  const order = Object.keys(FOLDERS);
  const rows = Map.groupBy(order, (name) => heightOf(name));
  return [...rows].toSorted(([a], [b]) => b - a).map(([, names]) => names);
}

function topOf(path: string): string {
  return path.split("/")[0] ?? "";
}
