import type { Field, Fields as Described } from "../../webhooks/resources/field.ts";
import type { Child } from "./element.ts";
import { type Fields, flagOf, numberOf, textOf, textsOf, timeOf } from "./fields.ts";
import { badge, code, type Fact, moment } from "./pieces.ts";
import { NOTHING } from "./text.ts";

/** The content of a cell or of a fact. */
export type Content = string | readonly Child[];

interface Format {
  /** The class of cells. */
  readonly look?: string;
  readonly content: (record: Fields, name: string, now: number) => Content;
}

const FORMATS = {
  name: { look: "name", content: textOf },
  code: { look: "name", content: (record, name) => [code(textOf(record, name) || NOTHING)] },
  codes: { look: "name", content: (record, name) => [code(textsOf(record, name).join(" "))] },
  list: { look: "name", content: (record, name) => textsOf(record, name).join(", ") || NOTHING },
  prose: { look: "prose", content: (record, name) => textOf(record, name) || NOTHING },
  number: { look: "number", content: (record, name) => String(numberOf(record, name) ?? NOTHING) },
  badge: { content: (record, name) => [badge(textOf(record, name))] },
  switch: { content: (record, name) => [badge(flagOf(record, name) ? "enabled" : "disabled")] },
  moment: { content: (record, name, now) => [moment(timeOf(record, name), now)] },
} as const satisfies Readonly<Record<string, Format>>;

/** The name of a format. */
export type FormatName = keyof typeof FORMATS;

/** Types without a format are shown only where a view says how. */
const FORMAT_OF: Readonly<Partial<Record<Field["type"], FormatName>>> = {
  id: "code",
  url: "code",
  kind: "code",
  kinds: "codes",
  texts: "codes",
  text: "prose",
  choice: "badge",
  flag: "switch",
  integer: "number",
  milliseconds: "number",
  seconds: "number",
  time: "moment",
  headers: "list",
};

/** The format with this name, or that of a field. */
export function formatOf(field: Field | undefined, name?: FormatName): Format {
  return FORMATS[name ?? FORMAT_OF[field?.type ?? "text"] ?? "prose"];
}

/** The fields that a record has and that have a label, in the order of their description; `own` has other contents for some. */
export function factsOf(
  described: Described,
  record: Fields,
  now: number,
  own: Readonly<Record<string, Content | undefined>> = {},
): Fact[] {
  return Object.entries(described).flatMap(([name, field]): Fact[] => {
    const { label, type, shown } = field;
    const isOwn = Object.hasOwn(own, name);
    const isAbsent = shown === "sometimes" && record[name] === undefined;
    if (label === undefined || !isOwn && (isAbsent || FORMAT_OF[type] === undefined)) return [];
    const content = isOwn ? own[name] : formatOf(field).content(record, name, now);
    return content === undefined ? [] : [[label, content]];
  });
}
