import type { ProblemLog } from "./problem_log.ts";
import { countOf, described, flagOf, isNull, isOddNumber, shown } from "./scalar.ts";
import type { YamlList, YamlMapping, YamlScalar, YamlValue } from "./value.ts";

/** Reads the fields of one mapping by type; what has the wrong type is reported and reads as absent. */
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

  /** Whether the field was there and could not be read. */
  failed(key: string): boolean {
    return this.#failed.has(key);
  }

  /** Offset of the field's value; of the mapping where the field is absent. */
  offset(key: string): number {
    return this.#mapping.entries.get(key)?.value.offset ?? this.#mapping.offset;
  }

  /** The text as written, also when it looks like a whole number or a flag; absent for null. */
  text(key: string): string | undefined {
    const scalar = this.#scalar(key, "a text");
    if (scalar === undefined || !isOddNumber(scalar)) return scalar?.text;
    const text = `expected a text, got the number '${shown(scalar.text)}'; put it in quotes`;
    this.#failed.add(key);
    this.#log.error(scalar.offset, pathOf(this.#path, key), text);
    return undefined;
  }

  /** The text as written, whatever it looks like; absent for null. */
  anyText(key: string): string | undefined {
    return this.#scalar(key, "a text")?.text;
  }

  /** A flag; false when absent. */
  flag(key: string): boolean {
    const scalar = this.#scalar(key, "true or false");
    if (scalar === undefined) return false;
    const flag = flagOf(scalar);
    if (flag === undefined) this.#fail(key, "true or false", scalar);
    return flag ?? false;
  }

  /** One of the words, in lower case as they stand in the list. */
  choice<const T extends string>(key: string, words: readonly T[]): T | undefined {
    const wanted = `one of ${words.join(", ")}`;
    const scalar = this.#scalar(key, wanted);
    if (scalar === undefined) return undefined;
    const word = words.find((known) => known === scalar.text);
    if (word === undefined) this.#fail(key, wanted, scalar);
    return word;
  }

  /** A whole number of the range. */
  count(key: string, range: { readonly min: number; readonly max: number }): number | undefined {
    const wanted = `a whole number from ${range.min} to ${range.max}`;
    const scalar = this.#scalar(key, wanted);
    if (scalar === undefined) return undefined;
    const count = countOf(scalar);
    if (count !== undefined && count >= range.min && count <= range.max) return count;
    const leadingZero = !scalar.quoted && /^\+?0[0-9]+$/.test(scalar.text);
    this.#fail(key, leadingZero ? `${wanted} without leading zeros` : wanted, scalar);
    return undefined;
  }

  /** A list. */
  list(key: string): YamlList | undefined {
    const value = this.#present(key);
    if (value === undefined || value.kind === "list") return value;
    this.#fail(key, "a list, each item beginning with '-'", value);
    return undefined;
  }

  /** A mapping. */
  mapping(key: string): YamlMapping | undefined {
    const value = this.#present(key);
    if (value === undefined || value.kind === "mapping") return value;
    this.#fail(key, "a mapping", value);
    return undefined;
  }

  #scalar(key: string, wanted: string): YamlScalar | undefined {
    const value = this.#present(key);
    if (value === undefined || value.kind === "scalar") return value;
    this.#fail(key, wanted, value);
    return undefined;
  }

  #present(key: string): Exclude<YamlValue, { kind: "broken" }> | undefined {
    const value = this.#mapping.entries.get(key)?.value;
    if (value === undefined || (value.kind === "scalar" && isNull(value))) return undefined;
    if (value.kind !== "broken") return value;
    this.#failed.add(key);
    return undefined;
  }

  #fail(key: string, wanted: string, value: YamlValue): void {
    this.#failed.add(key);
    this.#log.error(value.offset, pathOf(this.#path, key), `expected ${wanted}, got ${described(value)}`);
  }
}

/** The path of a field of the mapping at `path`. */
export function pathOf(path: string, key: string): string {
  return path === "" ? shown(key) : `${path}.${shown(key)}`;
}
