import type { LineFormat } from "./flush_ports.ts";

/** Separates the parts of a line or of a name, or would end it. */
const BREAKS_NAME = /[.:|=\p{Cc}]/gu;
const BREAKS_VALUE = /[.:|\p{Cc}]/gu;

/** Lines of plain pushed statistics: tags, where there are any, are part of the name. */
export function pushLines(tags: ReadonlyMap<string, string>): LineFormat {
  const suffix = tagSuffix(tags);
  return statLines((name) => ({ name: name + suffix, end: "" }));
}

/** A name as the receiver is to see it, and what stands behind the type of the value. */
export interface LineParts {
  readonly name: string;
  readonly end: string;
}

/** Lines `name:value|type`, with the name and the end that `parts` makes of a statistic's name. */
export function statLines(parts: (name: string) => LineParts): LineFormat {
  return {
    counter(statName, delta) {
      const { name, end } = parts(statName);
      return `${name}:${numberText(delta)}|c${end}`;
    },
    gauge(statName, value) {
      const { name, end } = parts(statName);
      const line = `${name}:${numberText(value)}|g${end}`;
      // A value with a sign is taken as a change, so the gauge is brought to 0 before.
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

/** `.__key=value` for each tag, sorted by key. */
function tagSuffix(tags: ReadonlyMap<string, string>): string {
  return [...tags].sort(([first], [second]) => first < second ? -1 : 1).map(([key, value]) => {
    return `.__${key.replace(BREAKS_NAME, "_")}=${value.replace(BREAKS_VALUE, "_")}`;
  }).join("");
}

/**
 * How many durations each of those that were kept stands for. The weights are whole, because receivers
 * cut a fraction off, and their sum is what was seen.
 */
export function sampleWeights(kept: number, seen: number): readonly number[] {
  const least = Math.floor(seen / kept);
  const heavier = seen - least * kept;
  return Array.from({ length: kept }, (_, index) => index < heavier ? least + 1 : least);
}

/** `|@rate` such that one divided by the rate is no less than the weight; nothing for a weight of 1. */
export function rateText(weight: number): string {
  if (weight <= 1) return "";
  let rate = 1 / weight;
  // Rounding may have gone up, and a receiver that cuts the fraction off would count one less.
  while (1 / rate < weight) rate -= rate * Number.EPSILON;
  return `|@${rate}`;
}

/** Milliseconds to the microsecond. */
function durationText(ms: number): string {
  return String(Number(ms.toFixed(3)));
}

/** Digits without an exponent, as far as numbers of that size are of any use. */
function numberText(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(6)));
}
