import { element, setText } from "./element.ts";
import { KEPT_SECONDS } from "./snapshot.ts";

/** The values of one second. */
interface SecondPoint {
  readonly at: number;
  readonly whole: number;
  /** The part of the whole with its own color. */
  readonly part: number;
}

/** Options of a chart. */
interface SecondsChartOptions {
  /** The classes of the rest of the whole and of the part, with their legends. */
  readonly legend: readonly [rest: readonly [string, string], part: readonly [string, string]];
  /** The highest value that is shown. */
  readonly topText: (top: number) => string;
  /** The text for screen readers, from the highest value and the newest point. */
  readonly describe: (top: number, last: SecondPoint) => string;
  readonly empty: string;
  /** The height of the chart shows at least this value. */
  readonly least: number;
}

const HEIGHT = 100;
const SPACE = "http://www.w3.org/2000/svg";

/** One bar per second of the last two minutes. */
export class SecondsChart {
  readonly nodes: readonly HTMLElement[];
  readonly #options: SecondsChartOptions;
  readonly #top = element("span", { class: "top", "aria-hidden": "true" });
  readonly #picture: SVGSVGElement;
  readonly #bars: readonly (readonly [SVGRectElement, SVGRectElement])[];

  constructor(options: SecondsChartOptions) {
    this.#options = options;
    this.#picture = svg("svg", {
      viewBox: `0 0 ${KEPT_SECONDS} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
    });
    this.#bars = Array.from({ length: KEPT_SECONDS }, (_, index) => {
      const x = String(index);
      const [rest, part] = options.legend.map(([name]) =>
        svg("rect", { class: name, x, width: "0.8", height: "0" })
      ) as [SVGRectElement, SVGRectElement];
      this.#picture.append(rest, part);
      return [rest, part] as const;
    });
    const ends = element(
      "div",
      { class: "axis", "aria-hidden": "true" },
      "2 min ago",
      element("span", {}, "now"),
    );
    const names = options.legend.map(([name, text]) => element("span", { class: name }, text));
    this.nodes = [
      element("div", { class: "chart" }, this.#top, this.#picture, ends),
      element("p", { class: "legend" }, ...names),
    ];
    this.update([]);
  }

  /** Shows the points, the newest at the right. */
  update(points: readonly SecondPoint[]): void {
    const { least, topText, describe, empty } = this.#options;
    const last = points.at(-1);
    const highest = Math.max(0, ...points.map(({ whole }) => whole));
    const top = Math.max(least, highest);
    const bySecond = new Map(points.map((point) => [Math.floor(point.at / 1_000), point]));
    const end = Math.floor((last?.at ?? 0) / 1_000);
    this.#bars.forEach(([rest, colored], index) => {
      const point = bySecond.get(end - KEPT_SECONDS + 1 + index);
      const whole = HEIGHT * (point?.whole ?? 0) / top;
      const part = HEIGHT * (point?.part ?? 0) / top;
      place(rest, HEIGHT - whole, whole - part);
      place(colored, HEIGHT - part, part);
    });
    setText(this.#top, highest === 0 ? empty : topText(top));
    this.#picture.setAttribute("aria-label", last === undefined ? empty : describe(top, last));
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
