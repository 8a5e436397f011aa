import type { SharesRun } from "../bench/quota_shares.ts";

const SIZE = { width: 800, left: 44, right: 12, top: 74, plot: 180, bottom: 28 } as const;
const COLORS = ["#2f81f7", "#d1682b", "#8957e5"] as const;
/** Above the limit, for a second with a burst. */
const MOST = 1.5;
/** Colors of text and lines that can be seen where the page is light, and where it is dark. */
const STYLE = "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#59636e}" +
  ".line{stroke:#9198a1;stroke-dasharray:3 3}.passed{fill:none;stroke:#1f2328;stroke-width:1.5}" +
  "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.passed{stroke:#e6edf3}}";

/** A picture of the shares of Envoys over time, and of the requests that passed. */
export function quotasSvg({ limit, events, seconds }: SharesRun): string {
  const height = SIZE.top + SIZE.plot + SIZE.bottom;
  const base = SIZE.top + SIZE.plot;
  const width = (SIZE.width - SIZE.left - SIZE.right) / seconds.length;
  const xAt = (second: number) => SIZE.left + second * width;
  const yAt = (rate: number) => base - Math.min(rate / limit, MOST) / MOST * SIZE.plot;
  const bars = seconds.flatMap(({ shares }, second) => {
    let below = 0;
    return shares.flatMap((share, index) => {
      const y = yAt(below + share);
      const bar = rect(xAt(second), y, width + 0.6, yAt(below) - y, COLORS[index] ?? COLORS[0]);
      below += share;
      return share === 0 ? [] : [bar];
    });
  });
  const points = seconds.map(({ passed }, second) => {
    const all = passed.reduce((sum, count) => sum + count, 0);
    return `${xAt(second + 0.5).toFixed(1)},${yAt(all).toFixed(1)}`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${height}" role="img" aria-label="` +
    `Shares of three Envoys of a limit of ${limit} per second: ${eventsText(events)}">`,
    `<style>${STYLE}</style>`,
    ...legend(seconds[0]?.shares.length ?? 0),
    ...bars,
    ...[0, limit].map((rate) =>
      `<line class="line" x1="${SIZE.left}" x2="${SIZE.width - SIZE.right}" y1="${yAt(rate)}" y2="${
        yAt(rate)
      }"/>` +
      text(12, yAt(rate) + 4, String(rate), "small")
    ),
    ...events.flatMap(({ second, name }) => [
      `<line class="line" x1="${xAt(second).toFixed(1)}" x2="${xAt(second).toFixed(1)}" y1="${
        SIZE.top - 26
      }" ` +
      `y2="${base}"/>`,
      text(xAt(second) + 4, SIZE.top - 18, name, "small"),
    ]),
    `<polyline class="passed" points="${points.join(" ")}"/>`,
    ...events.map(({ second }) => text(xAt(second), height - 8, `${second} s`, "small")),
    text(SIZE.width - SIZE.right - 28, height - 8, `${seconds.length} s`, "small"),
    "</svg>\n",
  ].join("\n");
}

function legend(envoys: number): string[] {
  const parts = COLORS.slice(0, envoys).flatMap((color, index) => [
    rect(SIZE.left + index * 120, 9, 12, 12, color),
    text(SIZE.left + 18 + index * 120, 20, `edge-${index + 1}, share`),
  ]);
  const x = SIZE.left + envoys * 120;
  return [
    ...parts,
    `<line class="passed" x1="${x}" x2="${x + 24}" y1="15" y2="15"/>`,
    text(x + 32, 20, "requests that passed, per second"),
  ];
}

function eventsText(events: SharesRun["events"]): string {
  return events.map(({ second, name }) => `at ${second} s, ${name}`).join("; ");
}

function rect(x: number, y: number, width: number, height: number, color: string): string {
  const [left, top, wide, high] = [x, y, width, height].map((value) => value.toFixed(1));
  return `<rect x="${left}" y="${top}" width="${wide}" height="${high}" fill="${color}" shape-rendering="crispEdges"/>`;
}

function text(x: number, y: number, content: string, kind?: string): string {
  return `<text x="${x.toFixed(1)}" y="${y}"${
    kind === undefined ? "" : ` class="${kind}"`
  }>${content}</text>`;
}
