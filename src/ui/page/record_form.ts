import type { Field, Fields as Described } from "../../webhooks/resources/field.ts";
import type { ShownSecret } from "./dialogs.ts";
import { type Fields, parseExact, textOf } from "./fields.ts";
import type { FormField, FormValues } from "./form.ts";
import { NOTHING } from "./text.ts";
import { momentIn, objectIn, rateIn, wholeIn, wordsIn } from "./typed_text.ts";
import type { PageParts } from "./view.ts";

/** A form that adds and edits records of one kind. */
export interface RecordForm {
  readonly list: string;
  readonly noun: string;
  /** The fields of the form, for a record or for a new one, which are filled in by their names. */
  readonly fields: (record: Fields | undefined) => readonly RecordField[];
  /** Completes the body of the call; a null clears a value, and is left out of a new record. */
  readonly complete?: (body: Fields, values: FormValues) => Fields;
}

/** A field; `parse` converts its text for the API. */
export interface RecordField extends FormField {
  readonly parse?: ((text: string, name: string) => unknown) | undefined;
}

/** Replaces a described field in a form: some parts of it, other fields, or none. */
type OwnField = Readonly<Partial<RecordField>> | readonly RecordField[];

const WHOLE = { kind: "whole", parse: (text: string, name: string) => wholeIn(text, name) ?? null } as const;

const OBJECT = {
  kind: "lines",
  parse: (text: string, name: string) => text.trim() === "" ? null : parseExact(objectIn(text, name)),
} as const;

/** The kinds of inputs and what their texts mean, by the type of the field; other types are trimmed texts. */
const INPUTS: Readonly<Partial<Record<Field["type"], Pick<RecordField, "kind" | "parse">>>> = {
  choice: { kind: "choice" },
  flag: { kind: "check", parse: (text) => text === "true" },
  integer: WHOLE,
  milliseconds: WHOLE,
  seconds: WHOLE,
  moment: { kind: "moment", parse: momentIn },
  secret: { kind: "secret", parse: (text) => text },
  pem: { kind: "lines", parse: (text) => text },
  kinds: { parse: wordsIn },
  texts: { parse: (text) => text.trim() === "" ? null : wordsIn(text) },
  rate: { parse: rateIn },
  filter: OBJECT,
  condition: OBJECT,
  template: OBJECT,
};

/** The fields of a record that can be set, for a record or for a new one. */
export function settableFields(
  described: Described,
  record: Fields | undefined,
  own: Readonly<Record<string, OwnField>> = {},
): RecordField[] {
  const settable = Object.entries(described).filter(([, { set }]) =>
    record === undefined ? set !== undefined : set === "always"
  );
  return requestFields(Object.fromEntries(settable), own, record);
}

/** The fields of a request that have a label. */
export function requestFields(
  described: Described,
  own: Readonly<Record<string, OwnField>> = {},
  record?: Fields,
): RecordField[] {
  return Object.entries(described).flatMap(([name, field]): RecordField | readonly RecordField[] => {
    const other = own[name] ?? {};
    if (isList(other)) return other;
    return field.label === undefined ? [] : { ...fieldOf(name, field, record), ...other };
  });
}

/** `Array.isArray` does not narrow a readonly list. */
function isList(own: OwnField): own is readonly RecordField[] {
  return Array.isArray(own);
}

function fieldOf(name: string, field: Field, record: Fields | undefined): RecordField {
  const { type, label = name, choices } = field;
  const isOptional = choices !== undefined && field.isNullable === true;
  const isNew = record === undefined;
  const isNumber = INPUTS[type] === WHOLE;
  const hasDefault = field.default !== undefined;
  return {
    ...INPUTS[type],
    ...(isOptional ? { parse: (text: string) => text === "" ? null : text } : {}),
    name,
    label,
    required: field.isRequired === true || !isNew && isNumber && hasDefault,
    hint: field.hint ?? (isNumber ? numberHint(field, isNew) : undefined),
    choices: [...(isOptional ? [""] : []), ...choices ?? []].map((choice) => [choice, choice || NOTHING]),
    value: isNew && hasDefault && !isNumber ? valueOf(field.default) : undefined,
  };
}

function numberHint({ default: value, min, max }: Field, isNew: boolean): string | undefined {
  if (isNew && value !== undefined) return `${value} when empty`;
  return min === undefined || max === undefined ? undefined : `${min} to ${max}`;
}

/** Asks for a new record, creates it and shows its secret. */
export function askNew(
  { api, dialogs }: PageParts,
  form: RecordForm,
  secretOf: (created: Fields) => ShownSecret | undefined,
  added: () => void,
): void {
  const fields = form.fields(undefined);
  dialogs.form({
    title: `Add ${/^[aeiou]/.test(form.noun) ? "an" : "a"} ${form.noun}`,
    submit: "Add",
    fields,
    run: async (values) => {
      const entries = Object.entries(bodyOf(form, fields, values)).filter(([, value]) => value !== null);
      const created = await api.administer(`/${form.list}`, { body: Object.fromEntries(entries) });
      added();
      return secretOf(created);
    },
  });
}

/** Asks for changes of a record and sends only those: another person may have changed the rest. */
export function askEdit(
  { api, dialogs, messages }: PageParts,
  form: RecordForm,
  record: Fields,
  { title, text, edited }: { readonly title: string; readonly text: string; readonly edited: () => void },
): void {
  const fields = form.fields(record).map((field) => ({
    ...field,
    value: field.value ?? (valueOf(record[field.name]) || field.choices?.[0]?.[0] || ""),
  }));
  dialogs.form({
    title,
    text,
    submit: "Save",
    fields,
    run: async (values) => {
      const changed = fields.filter(({ name, value }) => (values[name] ?? "") !== value);
      if (changed.length === 0) return void messages.say("Nothing changed.");
      const path = `/${form.list}/${encodeURIComponent(textOf(record, "id"))}`;
      await api.administer(path, { method: "PATCH", body: bodyOf(form, changed, values) });
      edited();
      return void messages.say(`${form.noun[0]?.toUpperCase()}${form.noun.slice(1)} changed.`);
    },
  });
}

function valueOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(" ");
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return value === false ? "" : String(value ?? "");
}

/** The typed values for the API. */
export function parsedValues(fields: readonly RecordField[], values: FormValues): Fields {
  return Object.fromEntries(fields.map(({ name, parse = (text: string) => text.trim() }) => {
    return [name, parse(values[name] ?? "", name)];
  }));
}

function bodyOf({ complete }: RecordForm, fields: readonly RecordField[], values: FormValues): Fields {
  const body = parsedValues(fields, values);
  return complete === undefined ? body : complete(body, values);
}
