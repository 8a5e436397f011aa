import type { LineFormat } from "./flush_ports.ts";
import { type Mogrifier, mogrify, type StatTags } from "./mogrifier.ts";

/** Starts each tag in the name of a statistic: `.__key=value`. */
const TAG_MARK = ".__";
/** Separators of a plain line or name, and control characters. */
const PLAIN_KEY = /[.:|=\p{Cc}]/gu;
const PLAIN_VALUE = /[.:|\p{Cc}]/gu;
/** Separators of a tagged line, and control characters. */
const TAGGED_NAME = /[:|\p{Cc}]/gu;
const TAGGED_KEY = /[:|,\p{Cc}]/gu;
const TAGGED_VALUE = /[|,\p{Cc}]/gu;

/** Lines of plain pushed statistics: tags are part of the name. */
export function statsdLines(tags: StatTags): LineFormat {
  const suffix = [...tags].sort(([first], [second]) => first < second ? -1 : 1).map(([key, value]) => {
    return `${TAG_MARK}${key.replace(PLAIN_KEY, "_")}=${value.replace(PLAIN_VALUE, "_")}`;
  }).join("");
  return statLines((name) => ({ name: name + suffix, end: "" }));
}

/** Lines `name:value|type|#key:value,key:value`; a statistic's own tags take precedence over `tags`. */
export function taggedLines(
  { tags, mogrifiers }: { readonly tags: StatTags; readonly mogrifiers: readonly Mogrifier[] },
): LineFormat {
  return statLines((statName) => {
    const { name, tags: own } = separateTags(statName);
    const mogrified = mogrify(mogrifiers, name);
    const all = new Map([...tags, ...own, ...mogrified?.tags ?? []]);
    // A mogrified name may be empty.
    return { name: (mogrified?.name || name).replace(TAGGED_NAME, "_"), end: tagText(all) };
  });
}

function separateTags(statName: string): { name: string; tags: StatTags } {
  const [name = "", ...pairs] = statName.split(TAG_MARK);
  const tags = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at <= 0) return { name: statName, tags: new Map() };
    tags.set(pair.slice(0, at), pair.slice(at + 1));
  }
  return { name, tags };
}

function tagText(tags: StatTags): string {
  const texts = [...tags].filter(([, value]) => value !== "").map(([key, value]) => {
    return `${key.replace(TAGGED_KEY, "_")}:${value.replace(TAGGED_VALUE, "_")}`;
  });
  return texts.length === 0 ? "" : `|#${texts.join(",")}`;
}

/** Lines `name:value|type`, with the name and the end of the line that `parts` returns for a statistic. */
function statLines(parts: (name: string) => { readonly name: string; readonly end: string }): LineFormat {
  return {
    counter(statName, delta) {
      const { name, end } = parts(statName);
      return `${name}:${numberText(delta)}|c${end}`;
    },
    gauge(statName, value) {
      const { name, end } = parts(statName);
      const line = `${name}:${numberText(value)}|g${end}`;
      // A receiver adds a signed value to the gauge, so it is set to 0 before.
      return value < 0 ? `${name}:0|g${end}\n${line}` : line;
    },
    timer(statName, { values, seen }) {
      const { name, end } = parts(statName);
      return sampleWeights(values.length, seen).map((weight, index) => {
        return `${name}:${durationText(values[index] ?? 0)}|ms${rateText(weight)}${end}`;
      });
    },
  };
}

/** Number of durations that each kept one represents: whole numbers, because receivers truncate, with the sum `seen`. */
export function sampleWeights(kept: number, seen: number): readonly number[] {
  const least = Math.floor(seen / kept);
  const heavier = seen - least * kept;
  return Array.from({ length: kept }, (_, index) => index < heavier ? least + 1 : least);
}

/** `|@rate` such that one divided by the rate is at least the weight; nothing for a weight of 1. */
export function rateText(weight: number): string {
  if (weight <= 1) return "";
  let rate = 1 / weight;
  // Rounding may have gone up, and a receiver that truncates would count one less.
  while (1 / rate < weight) rate -= rate * Number.EPSILON;
  return `|@${rate}`;
}

/** Milliseconds to the microsecond. */
function durationText(ms: number): string {
  return String(Number(ms.toFixed(3)));
}

/** Digits without an exponent, to the millionth. */
function numberText(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(6)));
}
