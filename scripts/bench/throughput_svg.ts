import { wholeNumber } from "../../tests/harness/markdown_table.ts";
import type { Summary } from "./report.ts";

const SCENARIO = "8x32";
const BARS = [
  { target: "echo", label: "grpc-js echo", color: "#8b949e" },
  { target: "memory", label: "Weir, memory", color: "#2f81f7" },
  { target: "redis", label: "Weir, redis-server", color: "#d1682b" },
] as const;
const SIZE = {
  width: 800,
  height: 190,
  label: 140,
  gap: 20,
  bar: 26,
  step: 40,
  top: 58,
  number: 70,
} as const;
/** Colors of text that can be read where the page is light, and where it is dark. */
const STYLE = "text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#59636e}" +
  ".title{font-weight:600}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}}";

/** A picture of calls a second and p99, side by side; nothing when one of the targets was not measured. */
export function throughputSvg(summaries: readonly Summary[]): string | undefined {
  const bars = BARS.flatMap((bar) => {
    const summary = summaries.find(({ scenario, target }) => scenario === SCENARIO && target === bar.target);
    return summary === undefined ? [] : [{ ...bar, ...summary.median }];
  });
  if (bars.length < BARS.length) return undefined;
  const width = (SIZE.width - SIZE.label - SIZE.gap) / 2;
  const labels = bars.map(({ label }, index) => text(0, rowAt(index), label));
  const rates = bars.map(({ color, callsPerSecond }) => ({
    color,
    value: callsPerSecond,
    label: wholeNumber(callsPerSecond),
  }));
  const p99s = bars.map(({ color, p99Ms }) => ({ color, value: p99Ms, label: `${p99Ms.toFixed(2)} ms` }));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE.width} ${SIZE.height}" role="img" ` +
    `aria-label="${ariaLabel(bars)}">`,
    `<style>${STYLE}</style>`,
    ...labels,
    ...panel({ at: SIZE.label, width, title: "calls/s", note: "longer is better", bars: rates }),
    ...panel({
      at: SIZE.label + width + SIZE.gap,
      width,
      title: "p99",
      note: "shorter is better",
      bars: p99s,
    }),
    text(
      0,
      SIZE.height - 8,
      "8 connections of 32 calls in flight, 10,000 keys in turn, one process",
      "small",
    ),
    "</svg>\n",
  ].join("\n");
}

interface Panel {
  readonly at: number;
  readonly width: number;
  readonly title: string;
  readonly note: string;
  readonly bars: readonly { readonly color: string; readonly value: number; readonly label: string }[];
}

function panel({ at, width, title, note, bars }: Panel): string[] {
  const largest = Math.max(...bars.map(({ value }) => value));
  const room = width - SIZE.number;
  return [
    text(at, 20, title, "title"),
    text(at, 38, note, "small"),
    ...bars.flatMap(({ color, value, label }, index) => {
      const length = Math.max(1, value / largest * room);
      const top = SIZE.top + index * SIZE.step;
      return [
        `<rect x="${at}" y="${top}" width="${
          length.toFixed(1)
        }" height="${SIZE.bar}" rx="3" fill="${color}"/>`,
        text(at + length + 6, rowAt(index), label),
      ];
    }),
  ];
}

function rowAt(index: number): number {
  return SIZE.top + index * SIZE.step + SIZE.bar / 2 + 5;
}

function text(x: number, y: number, content: string, kind?: string): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}"${
    kind === undefined ? "" : ` class="${kind}"`
  }>${content}</text>`;
}

function ariaLabel(
  bars: readonly { readonly label: string; readonly callsPerSecond: number; readonly p99Ms: number }[],
): string {
  return bars.map(({ label, callsPerSecond, p99Ms }) =>
    `${label}: ${wholeNumber(callsPerSecond)} calls/s, p99 ${p99Ms.toFixed(2)} ms`
  ).join("; ");
}
