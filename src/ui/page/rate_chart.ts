import { RATE_SECONDS, type RatePoint } from "./snapshot.ts";
import { countText, rateText, shareText } from "./text.ts";

const HEIGHT = 100;
const SPACE = "http://www.w3.org/2000/svg";

/** One bar per second of the last two minutes; the share over the limit has its own color. */
export class RateChart {
  readonly node: SVGSVGElement;
  readonly #bars: readonly (readonly [SVGRectElement, SVGRectElement])[];

  constructor() {
    this.node = svg("svg", {
      viewBox: `0 0 ${RATE_SECONDS} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
    });
    this.#bars = Array.from({ length: RATE_SECONDS }, (_, index) => {
      const x = String(index);
      const within = svg("rect", { class: "within", x, width: "0.8", height: "0" });
      const over = svg("rect", { class: "over", x, width: "0.8", height: "0" });
      this.node.append(within, over);
      return [within, over] as const;
    });
    this.update([]);
  }

  /** Shows the points, the newest at the right; returns the highest rate. */
  update(points: readonly RatePoint[]): number {
    const last = points.at(-1);
    const top = Math.max(1, ...points.map(({ perSecond }) => perSecond));
    const bySecond = new Map(points.map((point) => [Math.floor(point.at / 1_000), point]));
    const end = Math.floor((last?.at ?? 0) / 1_000);
    this.#bars.forEach(([within, over], index) => {
      const point = bySecond.get(end - RATE_SECONDS + 1 + index);
      const all = point === undefined ? 0 : HEIGHT * point.perSecond / top;
      const part = all * (point?.overShare ?? 0);
      place(within, HEIGHT - all, all - part);
      place(over, HEIGHT - part, part);
    });
    const label = last === undefined
      ? "No decisions yet"
      : `Decisions of the last two minutes: at most ${countText(top)} per second, now ${
        rateText(last.perSecond)
      } per second, ${shareText(last.overShare)} over the limit`;
    this.node.setAttribute("aria-label", label);
    return last === undefined ? 0 : top;
  }
}

/** A bar for a share from 0 to 1, for a table cell. */
export function shareBar(share: number): SVGSVGElement {
  const bar = svg("svg", {
    class: "share",
    viewBox: "0 0 100 6",
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const width = String(Math.round(100 * Math.min(1, Math.max(0, share))));
  bar.append(svg("rect", { class: "rest", width: "100", height: "6" }));
  bar.append(svg("rect", { class: "over", width, height: "6" }));
  return bar;
}

function place(bar: SVGRectElement, y: number, height: number): void {
  bar.setAttribute("y", y.toFixed(2));
  bar.setAttribute("height", Math.max(0, height).toFixed(2));
}

function svg<T extends "svg" | "rect">(
  tag: T,
  attributes: Readonly<Record<string, string>>,
): SVGElementTagNameMap[T] {
  const made = document.createElementNS(SPACE, tag) as SVGElementTagNameMap[T];
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
