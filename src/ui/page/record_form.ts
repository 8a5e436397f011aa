import type { ShownSecret } from "./dialogs.ts";
import { type Fields, textOf } from "./fields.ts";
import type { FormField, FormValues } from "./form.ts";
import { wholeIn } from "./typed_text.ts";
import type { PageParts } from "./view.ts";

/** How records of one kind are added and edited. */
export interface RecordForm {
  readonly list: string;
  readonly noun: string;
  /** The fields of the form, for a record or for a new one, which are filled in by their names. */
  readonly fields: (record: Fields | undefined) => readonly RecordField[];
  /** Completes the body of the call; a null clears a value, and is left out of a new record. */
  readonly complete?: (body: Fields, values: FormValues) => Fields;
}

/** A field; `parse` converts its text for the API, by its kind if undefined. */
export interface RecordField extends FormField {
  readonly parse?: (text: string) => unknown;
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
  return value === false ? "" : String(value ?? "");
}

function bodyOf({ complete }: RecordForm, fields: readonly RecordField[], values: FormValues): Fields {
  const body = Object.fromEntries(
    fields.map((field) => [field.name, parsed(field, values[field.name] ?? "")]),
  );
  return complete === undefined ? body : complete(body, values);
}

function parsed({ name, kind, parse }: RecordField, text: string): unknown {
  if (parse !== undefined) return parse(text);
  if (kind === "check") return text === "true";
  return kind === "whole" ? wholeIn(text, name) ?? null : text.trim();
}
