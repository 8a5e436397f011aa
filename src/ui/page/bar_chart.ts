import { element, setText } from "./element.ts";

/** A bar of a chart. */
export interface Bar {
  /** In milliseconds since the epoch; bars of one step of time are in one place. */
  readonly at: number;
  readonly whole: number;
  /** The part of the whole with its own color. */
  readonly part: number;
}

/** Options of a chart. */
interface BarChartOptions {
  /** The number of bars, and the time between them. */
  readonly bars: number;
  readonly stepMs: number;
  /** Under the chart, from the left to the right. */
  readonly axis: readonly string[];
  /** The classes of the rest of the whole and of the part, with their legends. */
  readonly legend: readonly [rest: readonly [string, string], part: readonly [string, string]];
  /** A value at the side of the chart. */
  readonly valueText: (value: number) => string;
  /** The tooltip of a bar. */
  readonly barText: (bar: Bar) => string;
  /** The text for screen readers, from the highest value and the newest bar. */
  readonly describe: (top: number, last: Bar) => string;
  readonly empty: string;
  /** The height of the chart shows at least this value. */
  readonly least: number;
}

interface Place {
  readonly rest: SVGRectElement;
  readonly part: SVGRectElement;
  readonly text: SVGTitleElement;
}

const HEIGHT = 100;
const SPACE = "http://www.w3.org/2000/svg";

/** Bars over time, each of a whole and its part. */
export class BarChart {
  readonly nodes: readonly HTMLElement[];
  readonly #options: BarChartOptions;
  readonly #top = element("span", { class: "top", "aria-hidden": "true" });
  readonly #middle = element("span", { class: "top middle", "aria-hidden": "true" });
  readonly #picture: SVGSVGElement;
  readonly #places: readonly Place[];

  constructor(options: BarChartOptions) {
    const { bars, axis, legend } = options;
    this.#options = options;
    this.#picture = svg("svg", {
      viewBox: `0 0 ${bars} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
    });
    for (const y of ["0.5", String(HEIGHT / 2)]) {
      this.#picture.append(svg("rect", { class: "grid", y, width: String(bars), height: "0.7" }));
    }
    this.#places = Array.from({ length: bars }, (_, index) => {
      const x = String(index + 0.1);
      const [rest, part] = legend.map(([name]) => svg("rect", { class: name, x, width: "0.8", height: "0" }));
      const area = { class: "area", x: String(index), width: "1", height: String(HEIGHT) };
      const text = svg("title", {});
      const group = svg("g", {});
      const place = { rest: rest ?? svg("rect", {}), part: part ?? svg("rect", {}), text };
      group.append(text, svg("rect", area), place.rest, place.part);
      this.#picture.append(group);
      return place;
    });
    const ends = axis.map((text) => element("span", {}, text));
    const names = legend.map(([name, text]) => element("span", { class: name }, text));
    this.nodes = [
      element(
        "div",
        { class: "chart" },
        this.#picture,
        this.#top,
        this.#middle,
        element("div", { class: "axis", "aria-hidden": "true" }, ...ends),
      ),
      element("p", { class: "legend" }, ...names),
    ];
    this.update([]);
  }

  /** Shows the bars, the newest at the right. */
  update(bars: readonly Bar[]): void {
    const { least, stepMs, valueText, barText, describe, empty } = this.#options;
    const last = bars.at(-1);
    const highest = Math.max(0, ...bars.map(({ whole }) => whole));
    const top = highest === 0 ? 0 : roundUp(Math.max(least, highest));
    const byStep = new Map(bars.map((bar) => [Math.floor(bar.at / stepMs), bar]));
    const first = Math.floor((last?.at ?? 0) / stepMs) + 1 - this.#places.length;
    this.#places.forEach((place, index) => {
      const bar = byStep.get(first + index);
      const whole = top === 0 ? 0 : HEIGHT * (bar?.whole ?? 0) / top;
      const part = top === 0 ? 0 : HEIGHT * (bar?.part ?? 0) / top;
      resize(place.rest, HEIGHT - whole, whole - part);
      resize(place.part, HEIGHT - part, part);
      setText(place.text, bar === undefined ? "" : barText(bar));
    });
    setText(this.#top, top === 0 ? empty : valueText(top));
    setText(this.#middle, top === 0 ? "" : valueText(top / 2));
    this.#picture.setAttribute("aria-label", last === undefined ? empty : describe(highest, last));
  }
}

/** The next number whose half is short too. */
function roundUp(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * ([1, 2, 4, 6, 8].find((one) => one * unit >= value) ?? 10);
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

function resize(bar: SVGRectElement, y: number, height: number): void {
  bar.setAttribute("y", y.toFixed(2));
  bar.setAttribute("height", Math.max(0, height).toFixed(2));
}

function svg<T extends "g" | "rect" | "svg" | "title">(
  tag: T,
  attributes: Readonly<Record<string, string>>,
): SVGElementTagNameMap[T] {
  const made = document.createElementNS(SPACE, tag) as SVGElementTagNameMap[T];
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
