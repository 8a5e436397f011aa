import { parseDuration } from "../../base/duration.ts";
import { editDistance } from "../../base/edit_distance.ts";
import type { YamlDocument } from "../../yaml/document.ts";
import { countOf, described, isNull, shown } from "../../yaml/scalar.ts";
import type { YamlEntry, YamlList, YamlMapping, YamlScalar, YamlValue } from "../../yaml/value.ts";

/** Where problems of a file go, with their places. */
export type WorkflowLog = YamlDocument["log"];

/** A length of time that may be written, and what holds when it is not. */
export interface DurationRange {
  readonly min: string;
  readonly max: string;
  readonly absent: string;
}

/** Reads one mapping of a workflow file; what is wrong goes to the log and reads as absent. */
export class WorkflowFields {
  readonly path: string;
  readonly #log: WorkflowLog;
  readonly #mapping: YamlMapping;

  /** `keys` are those that may stand in the mapping; any other is an error. */
  constructor(log: WorkflowLog, mapping: YamlMapping, path: string, keys: readonly string[]) {
    this.#log = log;
    this.#mapping = mapping;
    this.path = path;
    for (const [key, { offset }] of mapping.entries) {
      if (!keys.includes(key)) log.error(offset, path, `unknown key '${shown(key)}'; ${advice(key, keys)}`);
    }
  }

  /** Whether the key stands there, be its value right or not. */
  has(key: string): boolean {
    return this.#mapping.entries.has(key);
  }

  /** The value as the file has it, null included; nothing where it is absent or could not be read. */
  value(key: string): YamlValue | undefined {
    const value = this.#mapping.entries.get(key)?.value;
    return value?.kind === "broken" ? undefined : value;
  }

  /** Reports something about the field, or about the mapping where the field is absent. */
  error(key: string, text: string): void {
    const offset = this.#mapping.entries.get(key)?.value.offset ?? this.#mapping.offset;
    this.#log.error(offset, this.has(key) ? this.pathOf(key) : this.path, text);
  }

  /** The path of a field, for messages. */
  pathOf(key: string): string {
    return this.path === "" ? shown(key) : `${this.path}.${shown(key)}`;
  }

  /** A text; absent where the field is. */
  text(key: string, wanted = "a text"): string | undefined {
    const scalar = this.#scalar(key, wanted);
    return scalar === undefined ? undefined : scalar.text;
  }

  /** A text that has to be there and to look like this. */
  name(key: string, pattern: RegExp, wanted: string): string | undefined {
    if (!this.has(key)) this.error(key, `there is no ${key}; add ${wanted}`);
    const text = this.text(key, wanted);
    if (text === undefined || pattern.test(text)) return text;
    this.error(key, `${key} must be ${wanted}, not '${shown(text)}'`);
    return undefined;
  }

  /** One of the words; the first of them where the field is absent. */
  choice<const T extends string>(key: string, words: readonly [T, ...T[]]): T {
    const wanted = `one of ${words.join(", ")}`;
    const text = this.text(key, wanted);
    const word = words.find((known) => known === text);
    if (text !== undefined && word === undefined) {
      this.error(key, `${key} must be ${wanted}, not '${shown(text)}'`);
    }
    return word ?? words[0];
  }

  /** A whole number of the range. */
  count(key: string, { min, max, absent }: { min: number; max: number; absent: number }): number {
    const wanted = `a whole number from ${min} to ${max}`;
    const scalar = this.#scalar(key, wanted);
    if (scalar === undefined) return absent;
    const count = countOf(scalar);
    if (count !== undefined && count >= min && count <= max) return count;
    this.error(key, `${key} must be ${wanted}, not ${described(scalar)}`);
    return absent;
  }

  /** Milliseconds of a duration of the range. */
  duration(key: string, { min, max, absent }: DurationRange): number {
    const wanted = `a duration from ${min} to ${max}, such as ${absent}`;
    const text = this.text(key, wanted);
    if (text === undefined) return milliseconds(absent);
    const ms = parseDuration(text);
    if (ms !== undefined && ms >= milliseconds(min) && ms <= milliseconds(max)) return Math.ceil(ms);
    this.error(key, `${key} must be ${wanted}, not '${shown(text)}'`);
    return milliseconds(absent);
  }

  /** A list. */
  list(key: string): YamlList | undefined {
    const value = this.#present(key);
    if (value === undefined || value.kind === "list") return value;
    this.error(key, `${key} must be a list, each item beginning with '-', not ${described(value)}`);
    return undefined;
  }

  /** A mapping. */
  mapping(key: string): YamlMapping | undefined {
    const value = this.#present(key);
    if (value === undefined || value.kind === "mapping") return value;
    this.error(key, `${key} must be a mapping, not ${described(value)}`);
    return undefined;
  }

  /** The texts of a mapping by name, with their places. */
  texts(key: string): readonly { readonly key: string; readonly entry: YamlEntry; readonly text: string }[] {
    const mapping = this.mapping(key);
    if (mapping === undefined) return [];
    return [...mapping.entries].flatMap(([name, entry]) => {
      const { value } = entry;
      if (value.kind === "scalar" && !isNull(value)) return [{ key: name, entry, text: value.text }];
      if (value.kind !== "broken") {
        const path = `${this.pathOf(key)}.${shown(name)}`;
        this.#log.error(value.offset, path, `${shown(name)} must be a text, not ${described(value)}`);
      }
      return [];
    });
  }

  #scalar(key: string, wanted: string): YamlScalar | undefined {
    const value = this.#present(key);
    if (value === undefined || value.kind === "scalar") return value;
    this.error(key, `${key} must be ${wanted}, not ${described(value)}`);
    return undefined;
  }

  /** A field without a value is an error here: whoever wrote it meant something. */
  #present(key: string): Exclude<YamlValue, { kind: "broken" }> | undefined {
    const value = this.value(key);
    if (value === undefined || value.kind === "broken") return undefined;
    if (value.kind !== "scalar" || !isNull(value)) return value;
    this.error(key, `${key} has no value; add one, or leave ${key} out`);
    return undefined;
  }
}

function milliseconds(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new RangeError(`Cannot read the duration "${text}": it is none`);
  return ms;
}

function advice(key: string, known: readonly string[]): string {
  const wanted = key.slice(0, 40).toLowerCase();
  const near = known.find((name) => editDistance(wanted, name.toLowerCase()) <= Math.max(1, name.length / 3));
  return near === undefined ? `use one of ${known.join(", ")}` : `did you mean '${near}'?`;
}
