import {
  ALGORITHM_RULES,
  type PicturedAlgorithm,
  type PicturedRun,
  runTraffic,
  SECONDS,
} from "./algorithms_traffic.ts";

const SIZE = { width: 800, left: 20, row: 118, top: 46, bars: 60 } as const;
const COLORS = { passed: "#2f81f7", refused: "#d1682b" } as const;
const MARK_SECONDS = 60;
/** The limits of the rules, in short. */
const LIMITS: Readonly<Record<PicturedAlgorithm, string>> = {
  fixed_window: "60 per minute",
  sliding_window: "60 per minute",
  token_bucket: "60 per minute, burst 20",
  concurrency: "10 in flight",
};
/** Colors of text and lines that can be seen where the page is light, and where it is dark. */
const STYLE = "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#59636e}" +
  ".title{font-weight:600}.line{stroke:#9198a1;stroke-dasharray:3 3}" +
  "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}}";

/** A picture of the same traffic under each algorithm. */
export async function algorithmsSvg(): Promise<string> {
  const runs: PicturedRun[] = [];
  for (const algorithm of Object.keys(ALGORITHM_RULES) as PicturedAlgorithm[]) {
    runs.push(await runTraffic(algorithm));
  }
  const height = SIZE.top + runs.length * SIZE.row + 24;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${height}" role="img" ` +
    `aria-label="${runs.map((run) => `${run.algorithm}, ${summaryOf(run)}`).join("; ")}">`,
    `<style>${STYLE}</style>`,
    ...legend(),
    ...runs.flatMap((run, index) => row(run, SIZE.top + index * SIZE.row)),
    ...[0, 1, 2, 3].map((minute) => {
      const x = Math.min(xAt(minute * MARK_SECONDS), SIZE.width - 52);
      return text(x, height - 8, minute === 0 ? "0 s" : `${minute * MARK_SECONDS} s`, "small");
    }),
    "</svg>\n",
  ].join("\n");
}

function legend(): string[] {
  return [
    bar({ x: SIZE.left, y: 9, width: 12, height: 12, color: COLORS.passed }),
    text(SIZE.left + 18, 20, "passed"),
    bar({ x: SIZE.left + 84, y: 9, width: 12, height: 12, color: COLORS.refused }),
    text(SIZE.left + 102, 20, "refused"),
    text(SIZE.left + 180, 20, "requests per second of one user; each takes 4 s", "small"),
  ];
}

function row(run: PicturedRun, top: number): string[] {
  const most = Math.max(...run.seconds.map(({ passed, refused }) => passed + refused));
  const scale = SIZE.bars / most;
  const width = xAt(1) - xAt(0) - 0.6;
  const base = top + SIZE.bars + 26;
  return [
    text(SIZE.left, top + 14, run.algorithm, "title"),
    text(SIZE.left + 120, top + 14, summaryOf(run), "small"),
    ...run.seconds.flatMap(({ passed, refused }, second) => {
      const [x, high, higher] = [xAt(second), passed * scale, (passed + refused) * scale];
      return [
        ...(passed === 0 ? [] : [bar({ x, y: base - high, width, height: high, color: COLORS.passed })]),
        ...(refused === 0
          ? []
          : [bar({ x, y: base - higher, width, height: higher - high, color: COLORS.refused })]),
      ];
    }),
    ...[0, 1, 2, 3].map((minute) => {
      const x = xAt(minute * MARK_SECONDS).toFixed(1);
      return `<line class="line" x1="${x}" x2="${x}" y1="${top + 22}" y2="${base}"/>`;
    }),
  ];
}

function summaryOf({ algorithm, seconds, mostInMinute, mostInFlight }: PicturedRun): string {
  const passed = seconds.reduce((sum, second) => sum + second.passed, 0);
  const all = seconds.reduce((sum, second) => sum + second.passed + second.refused, 0);
  const most = algorithm === "concurrency" ? `${mostInFlight} in flight` : `${mostInMinute} within 60 s`;
  return `${LIMITS[algorithm]}: ${passed} of ${all} passed, at most ${most}`;
}

function xAt(second: number): number {
  return SIZE.left + second * (SIZE.width - 2 * SIZE.left) / SECONDS;
}

function bar(
  { x, y, width, height, color }: Readonly<Record<"x" | "y" | "width" | "height", number>> & {
    readonly color: string;
  },
): string {
  const [left, top, wide, high] = [x, y, width, height].map((value) => value.toFixed(1));
  return `<rect x="${left}" y="${top}" width="${wide}" height="${high}" fill="${color}"/>`;
}

function text(x: number, y: number, content: string, kind?: string): string {
  return `<text x="${x.toFixed(1)}" y="${y}"${
    kind === undefined ? "" : ` class="${kind}"`
  }>${content}</text>`;
}
