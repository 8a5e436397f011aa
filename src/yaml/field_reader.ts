import { editDistance } from "../base/edit_distance.ts";
import type { ProblemLog } from "./problem_log.ts";
import { countOf, described, flagOf, isNull, isOddNumber, shown } from "./scalar.ts";
import type { YamlList, YamlMapping, YamlScalar, YamlValue } from "./value.ts";

/** Reads the fields of a mapping by type; a field with the wrong type is logged and undefined. */
export class FieldReader {
  readonly log: ProblemLog;
  readonly source: YamlMapping;
  readonly path: string;
  readonly #failed = new Set<string>();

  constructor(log: ProblemLog, mapping: YamlMapping, path: string) {
    this.log = log;
    this.source = mapping;
    this.path = path;
  }

  has(key: string): boolean {
    return this.source.entries.has(key);
  }

  /** True if no field so far is invalid. */
  get isValid(): boolean {
    return this.#failed.size === 0;
  }

  /** True if the field is invalid. */
  failed(key: string): boolean {
    return this.#failed.has(key);
  }

  /** Reports an error of the field, which is invalid then. */
  error(key: string, text: string): void {
    this.#failed.add(key);
    this.log.error(this.offset(key), this.pathOf(key), text);
  }

  warning(key: string, text: string): void {
    this.log.warning(this.offset(key), this.pathOf(key), text);
  }

  /** The path of a field, for messages. */
  pathOf(key: string): string {
    return pathOf(this.path, key);
  }

  /** The offset of the value, or of the mapping without it. */
  offset(key: string): number {
    return this.source.entries.get(key)?.value.offset ?? this.source.offset;
  }

  /** A text, including integers and flags as they are written. */
  text(key: string): string | undefined {
    const scalar = this.#scalar(key, "a text");
    if (scalar === undefined || !isOddNumber(scalar)) return scalar?.text;
    this.error(key, `expected a text, got the number '${shown(scalar.text)}'; put it in quotes`);
    return undefined;
  }

  /** A text, including any scalar as it is written. */
  anyText(key: string): string | undefined {
    return this.#scalar(key, "a text")?.text;
  }

  /** A flag; false by default. */
  flag(key: string): boolean {
    const scalar = this.#scalar(key, "true or false");
    if (scalar === undefined) return false;
    const flag = flagOf(scalar);
    if (flag === undefined) this.#fail(key, "true or false", scalar);
    return flag ?? false;
  }

  /** One of the words, of which an empty one is not named. */
  choice<const T extends string>(key: string, words: readonly T[]): T | undefined {
    const expected = `one of ${words.filter((word) => word !== "").join(", ")}`;
    const scalar = this.#scalar(key, expected);
    if (scalar === undefined) return undefined;
    const word = words.find((known) => known === scalar.text);
    if (word === undefined) this.#fail(key, expected, scalar);
    return word;
  }

  /** An integer in the range. */
  count(key: string, range: { readonly min: number; readonly max: number }): number | undefined {
    const expected = `a whole number from ${range.min} to ${range.max}`;
    const scalar = this.#scalar(key, expected);
    if (scalar === undefined) return undefined;
    const count = countOf(scalar);
    if (count !== undefined && count >= range.min && count <= range.max) return count;
    const leadingZero = !scalar.quoted && /^\+?0[0-9]+$/.test(scalar.text);
    this.#fail(key, leadingZero ? `${expected} without leading zeros` : expected, scalar);
    return undefined;
  }

  /** A list. */
  list(key: string): YamlList | undefined {
    return this.#ofKind(key, "list", "a list, each item beginning with '-'");
  }

  /** A mapping. */
  mapping(key: string): YamlMapping | undefined {
    return this.#ofKind(key, "mapping", "a mapping");
  }

  #scalar(key: string, expected: string): YamlScalar | undefined {
    return this.#ofKind(key, "scalar", expected);
  }

  #ofKind<K extends YamlValue["kind"]>(key: string, kind: K, expected: string) {
    const value = this.#present(key);
    if (value?.kind === kind) return value as Extract<YamlValue, { kind: K }>;
    if (value !== undefined) this.#fail(key, expected, value);
    return undefined;
  }

  #present(key: string): Exclude<YamlValue, { kind: "broken" }> | undefined {
    const value = this.source.entries.get(key)?.value;
    if (value === undefined || (value.kind === "scalar" && isNull(value))) return undefined;
    if (value.kind !== "broken") return value;
    this.#failed.add(key);
    return undefined;
  }

  #fail(key: string, expected: string, value: YamlValue): void {
    this.error(key, `expected ${expected}, got ${described(value)}`);
  }
}

/** The path of a field. */
export function pathOf(path: string, key: string): string {
  return path === "" ? shown(key) : `${path}.${shown(key)}`;
}

/** The error for a key that is not one of these, with the most likely one. */
export function unknownKeyText(key: string, known: readonly string[]): string {
  const nearest = nearestKey(key, known);
  const advice = nearest === undefined ? `expected one of ${known.join(", ")}` : `did you mean '${nearest}'?`;
  return `unknown key '${shown(key)}'; ${advice}`;
}

function nearestKey(key: string, known: readonly string[]): string | undefined {
  // The cost grows with the length of the key.
  const given = plain(key.slice(0, 60));
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const candidate = plain(name);
    const begins = given.length >= 3 && candidate !== given && candidate.startsWith(given);
    const distance = begins ? 1 : editDistance(given, candidate);
    if (distance > Math.max(1, candidate.length / 3)) continue;
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  return best?.name;
}

/** Ignores letter case and separators, the most frequent mistakes. */
function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
