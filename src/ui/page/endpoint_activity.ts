import { wordsOf } from "./api.ts";
import { BarChart } from "./bar_chart.ts";
import { type Child, element, fill, isPressed } from "./element.ts";
import { exactText, type Fields, numberOf, recordsOf, textOf, timeOf } from "./fields.ts";
import { badge, emptyNote, linkTo, moment, panel } from "./pieces.ts";
import { Polling } from "./polling.ts";
import { countText, dayOf, momentText, shareText } from "./text.ts";
import type { PageParts } from "./view.ts";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const REFRESH_MS = 5_000;
const MAX_DELIVERIES = "8";
const MAX_FAILURES = 5;

interface Activity {
  readonly hours: readonly Fields[];
  readonly failures: readonly Fields[];
  readonly deliveries: readonly Fields[];
}

/** The attempts of an endpoint in the last day, its last failures and its last deliveries. */
export class EndpointActivity {
  readonly node: HTMLElement;
  readonly #parts: PageParts;
  readonly #id: string;
  readonly #chart = new BarChart({
    bars: HOURS,
    stepMs: HOUR_MS,
    axis: ["24 h ago", "12 h ago", "now"],
    legend: [["within", "succeeded"], ["over", "failed"]],
    valueText: (value) => `${countText(value)} per hour`,
    barText: ({ at, whole, part }) => {
      return `${momentText(at, at).slice(0, 5)}: ${countText(whole - part)} succeeded, ${
        countText(part)
      } failed`;
    },
    describe: (top, { whole, part }) =>
      `At most ${countText(top)} attempts per hour; ${countText(whole)} in this hour, ${
        shareText(whole === 0 ? 0 : part / whole)
      } failed`,
    empty: "No attempts in the last day",
    least: 2,
  });
  readonly #failures = element("div");
  readonly #deliveries = element("div");
  readonly #polling: Polling<Activity>;
  #shown = "";

  constructor(parts: PageParts, id: string) {
    this.#parts = parts;
    this.#id = id;
    this.node = element(
      "div",
      { class: "group" },
      panel("Attempts in the last day", ...this.#chart.nodes),
      panel("Last failures", this.#failures),
      panel("Last deliveries", this.#deliveries),
    );
    this.#polling = new Polling({
      clock: parts.clock,
      everyMs: REFRESH_MS,
      read: () => this.#read(),
      show: (activity) => this.#show(activity),
      fail: (error) => {
        fill(this.#deliveries, [element("p", { class: "problem" }, wordsOf(error))]);
        return false;
      },
    });
    this.#polling.read();
  }

  close(): void {
    this.#polling.close();
  }

  async #read(): Promise<Activity> {
    const { api } = this.#parts;
    const list = async (state?: string) => {
      const query = { endpointId: this.#id, state, limit: MAX_DELIVERIES };
      return recordsOf(await api.administer("/deliveries", { query }), "items");
    };
    const [hours, deliveries, ...failures] = await Promise.all([
      api.administer(`/endpoints/${encodeURIComponent(this.#id)}/attempts`),
      list(),
      list("failed"),
      list("retrying"),
    ]);
    const newest = failures.flat().sort((a, b) => createdAt(b) - createdAt(a)).slice(0, MAX_FAILURES);
    return { hours: recordsOf(hours, "items"), failures: newest, deliveries };
  }

  #show({ hours, failures, deliveries }: Activity): void {
    const now = this.#parts.clock.now();
    const bars = hours.map((hour) => {
      const part = numberOf(hour, "failed") ?? 0;
      return { at: timeOf(hour, "at") ?? 0, whole: part + (numberOf(hour, "succeeded") ?? 0), part };
    });
    const hour = now - now % HOUR_MS;
    this.#chart.update(bars.at(-1)?.at === hour ? bars : [...bars, { at: hour, whole: 0, part: 0 }]);
    const text = `${dayOf(now)} ${exactText({ failures, deliveries })}`;
    if (text === this.#shown || isPressed(this.node)) return;
    this.#shown = text;
    this.#list(this.#failures, failures, {
      empty: "No delivery has failed.",
      filters: { state: "failed" },
      detail: (delivery) => element("span", { class: "problem" }, lastError(delivery)),
    });
    this.#list(this.#deliveries, deliveries, {
      empty: "No deliveries yet.",
      filters: {},
      detail: (delivery) => moment(createdAt(delivery), now),
    });
  }

  #list(
    place: HTMLElement,
    deliveries: readonly Fields[],
    { empty, filters, detail }: {
      readonly empty: string;
      readonly filters: Readonly<Record<string, string>>;
      readonly detail: (delivery: Fields) => Child;
    },
  ): void {
    if (deliveries.length === 0) return fill(place, [emptyNote(empty)]);
    const items = deliveries.map((delivery) => {
      const link = linkTo(this.#parts, textOf(delivery, "event"), "deliveries", textOf(delivery, "id"));
      return element("li", {}, badge(textOf(delivery, "state")), link, detail(delivery));
    });
    const all = linkTo(this.#parts, "Show all of them", "deliveries", "", {
      endpointId: this.#id,
      ...filters,
    });
    fill(place, [element("ul", { class: "activity" }, ...items), all]);
  }
}

function createdAt(delivery: Fields): number {
  return timeOf(delivery, "createdAt") ?? 0;
}

function lastError(delivery: Fields): string {
  const failed = recordsOf(delivery, "attempts").findLast((attempt) => textOf(attempt, "error") !== "");
  return textOf(failed ?? {}, "error") || textOf(delivery, "reason");
}
