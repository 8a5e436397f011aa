import type { ShownSecret } from "./dialogs.ts";
import { type Fields, textOf } from "./fields.ts";
import { changedIn, type FormField, type FormValues } from "./form.ts";
import type { PageParts } from "./view.ts";

/** How records of one kind are added and edited. */
export interface RecordForm {
  /** The list that they are in. */
  readonly list: string;
  /** The noun for a record. */
  readonly noun: string;
  /** The fields of the form, for a record or for a new one. */
  readonly fields: (record: Fields | undefined) => readonly FormField[];
  /** The body of the call, from the named fields; a null clears a value, and is left out of a new record. */
  readonly read: (values: FormValues, names: readonly string[]) => Record<string, unknown>;
}

/** Asks for a new record, creates it and shows its secret. */
export function askNew(
  { api, dialogs }: PageParts,
  { list, noun, fields, read }: RecordForm,
  secretOf: (created: Fields) => ShownSecret,
  added: () => void,
): void {
  const shown = fields(undefined);
  dialogs.form({
    title: `Add ${/^[aeiou]/.test(noun) ? "an" : "a"} ${noun}`,
    submit: "Add",
    fields: shown,
    run: async (values) => {
      const entries = Object.entries(read(values, shown.map(({ name }) => name)));
      const body = Object.fromEntries(entries.filter(([, value]) => value !== null));
      const created = await api.administer(`/${list}`, { body });
      added();
      return secretOf(created);
    },
  });
}

/** Asks for changes of a record and sends only those: another person may have changed the rest. */
export function askEdit(
  { api, dialogs, messages }: PageParts,
  { list, noun, fields, read }: RecordForm,
  record: Fields,
  { title, text, edited }: { readonly title: string; readonly text: string; readonly edited: () => void },
): void {
  const shown = fields(record);
  dialogs.form({
    title,
    text,
    submit: "Save",
    fields: shown,
    run: async (values) => {
      const body = read(values, changedIn(shown, values));
      if (Object.keys(body).length === 0) return void messages.say("Nothing changed.");
      const path = `/${list}/${encodeURIComponent(textOf(record, "id"))}`;
      await api.administer(path, { method: "PATCH", body });
      edited();
      return void messages.say(`${noun[0]?.toUpperCase()}${noun.slice(1)} changed.`);
    },
  });
}
