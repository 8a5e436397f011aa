import { parseDuration } from "../../base/duration.ts";
import type { YamlDocument } from "../../yaml/document.ts";
import { FieldReader, unknownKeyText } from "../../yaml/field_reader.ts";
import { described, isNull, shown } from "../../yaml/scalar.ts";
import type { YamlList, YamlMapping, YamlValue } from "../../yaml/value.ts";
import type { TextTemplate } from "../model/template.ts";

/** Takes the problems of a file, with their positions. */
export type WorkflowLog = YamlDocument["log"];

/** Reads the templates of a text at this position; nothing where they are invalid, which is logged. */
export type ReadTemplate = (text: string, offset: number, path: string) => TextTemplate | undefined;

/** The range of a duration, and its default. */
interface DurationRange {
  readonly min: string;
  readonly max: string;
  readonly absent: string;
}

/** Reads one mapping of a workflow file; an invalid field is logged and reads as absent. */
export class WorkflowFields extends FieldReader {
  /** Any key that is not one of `keys` is an error. */
  constructor(log: WorkflowLog, mapping: YamlMapping, path: string, keys: readonly string[]) {
    super(log, mapping, path);
    for (const [key, { offset }] of mapping.entries) {
      if (!keys.includes(key)) log.error(offset, path, unknownKeyText(key, keys));
    }
  }

  /** The value as it is in the file, null included; nothing where it is absent or broken. */
  value(key: string): YamlValue | undefined {
    const value = this.source.entries.get(key)?.value;
    return value?.kind === "broken" ? undefined : value;
  }

  /** Reports something about the field, or about the mapping where the field is absent. */
  override error(key: string, text: string): void {
    if (this.has(key)) super.error(key, text);
    else this.log.error(this.source.offset, this.path, text);
  }

  override text(key: string): string | undefined {
    return this.#hasValue(key) ? this.anyText(key) : undefined;
  }

  /** A required text of this form. */
  name(key: string, pattern: RegExp, expected: string): string | undefined {
    if (!this.has(key)) this.error(key, `there is no ${key}; add ${expected}`);
    const text = this.text(key);
    if (text === undefined || pattern.test(text)) return text;
    this.error(key, `expected ${expected}, got '${shown(text)}'`);
    return undefined;
  }

  /** One of the words; the first of them when absent. */
  override choice<const T extends string>(key: string, words: readonly [T, ...T[]]): T {
    return (this.#hasValue(key) ? super.choice(key, words) : undefined) ?? words[0];
  }

  /** A whole number of the range. */
  override count(key: string, range: { min: number; max: number; absent: number }): number {
    return (this.#hasValue(key) ? super.count(key, range) : undefined) ?? range.absent;
  }

  /** A duration of the range, in milliseconds. */
  duration(key: string, { min, max, absent }: DurationRange): number {
    const text = this.text(key);
    if (text === undefined) return milliseconds(absent);
    const ms = parseDuration(text);
    if (ms !== undefined && ms >= milliseconds(min) && ms <= milliseconds(max)) return Math.ceil(ms);
    const expected = `a duration from ${min} to ${max}, such as ${absent}`;
    this.error(key, `expected ${expected}, got '${shown(text)}'`);
    return milliseconds(absent);
  }

  override list(key: string): YamlList | undefined {
    return this.#hasValue(key) ? super.list(key) : undefined;
  }

  override mapping(key: string): YamlMapping | undefined {
    return this.#hasValue(key) ? super.mapping(key) : undefined;
  }

  /** The templates of a mapping by name; `problemOf` checks each. */
  templates(
    key: string,
    read: ReadTemplate,
    problemOf: (name: string, text: string) => string | undefined,
  ): [name: string, template: TextTemplate][] {
    return [...this.mapping(key)?.entries ?? []].flatMap(([name, { offset, value }]) => {
      const path = `${this.pathOf(key)}.${shown(name)}`;
      const problem = value.kind === "scalar" && !isNull(value) ? problemOf(name, value.text) : undefined;
      if (problem !== undefined) this.log.error(offset, path, problem);
      return this.#template(name, value, path, read);
    });
  }

  /** The templates of parameters by name, in which a list repeats its name. */
  parameters(key: string, read: ReadTemplate): [name: string, template: TextTemplate][] {
    return [...this.mapping(key)?.entries ?? []].flatMap(([name, { offset, value }]) => {
      const path = `${this.pathOf(key)}.${shown(name)}`;
      const text = "a name cannot contain a template; write a name";
      if (name.includes("{{")) this.log.error(offset, path, text);
      if (value.kind !== "list") return this.#template(name, value, path, read);
      return value.items.flatMap((item, index) => this.#template(name, item, `${path}[${index}]`, read));
    });
  }

  #template(
    name: string,
    value: YamlValue,
    path: string,
    read: ReadTemplate,
  ): [name: string, template: TextTemplate][] {
    if (value.kind !== "scalar" || isNull(value)) {
      const text = `expected a text, got ${described(value)}`;
      if (value.kind !== "broken") this.log.error(value.offset, path, text);
      return [];
    }
    const template = read(value.text, value.offset, path);
    return template === undefined ? [] : [[name, template]];
  }

  /** An empty field is an error here: its author meant something. */
  #hasValue(key: string): boolean {
    const value = this.value(key);
    if (value?.kind !== "scalar" || !isNull(value)) return value !== undefined;
    this.error(key, `${key} has no value; add one, or leave ${key} out`);
    return false;
  }
}

function milliseconds(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new RangeError(`Cannot read the duration "${text}": it is none`);
  return ms;
}
