import type { ProblemLog } from "./problem_log.ts";
import { countOf, described, flagOf, isNull, isOddNumber, shown } from "./scalar.ts";
import type { YamlList, YamlMapping, YamlScalar, YamlValue } from "./value.ts";

/** Reads the fields of a mapping by type; a field with the wrong type is logged and undefined. */
export class FieldReader {
  readonly #log: ProblemLog;
  readonly #mapping: YamlMapping;
  readonly #path: string;
  readonly #failed = new Set<string>();

  constructor(log: ProblemLog, mapping: YamlMapping, path: string) {
    this.#log = log;
    this.#mapping = mapping;
    this.#path = path;
  }

  /** Whether the field is invalid. */
  failed(key: string): boolean {
    return this.#failed.has(key);
  }

  /** The offset of the value, or of the mapping without it. */
  offset(key: string): number {
    return this.#mapping.entries.get(key)?.value.offset ?? this.#mapping.offset;
  }

  /** A text, including integers and flags as they are written. */
  text(key: string): string | undefined {
    const scalar = this.#scalar(key, "a text");
    if (scalar === undefined || !isOddNumber(scalar)) return scalar?.text;
    const text = `expected a text, got the number '${shown(scalar.text)}'; put it in quotes`;
    this.#failed.add(key);
    this.#log.error(scalar.offset, pathOf(this.#path, key), text);
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
    const value = this.#mapping.entries.get(key)?.value;
    if (value === undefined || (value.kind === "scalar" && isNull(value))) return undefined;
    if (value.kind !== "broken") return value;
    this.#failed.add(key);
    return undefined;
  }

  #fail(key: string, expected: string, value: YamlValue): void {
    this.#failed.add(key);
    this.#log.error(value.offset, pathOf(this.#path, key), `expected ${expected}, got ${described(value)}`);
  }
}

/** The path of a field. */
export function pathOf(path: string, key: string): string {
  return path === "" ? shown(key) : `${path}.${shown(key)}`;
}
