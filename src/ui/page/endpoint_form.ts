import { type Fields, flagOf, numberOf, textOf, textsOf } from "./fields.ts";
import { changedIn, type FormField, type FormValues } from "./form.ts";
import { headersIn, wholeIn, wordsIn } from "./typed_text.ts";
import type { PageParts } from "./view.ts";

/** Said of every secret that signs. */
export const SIGNS =
  "It signs what is delivered: give it to the receiver, which checks X-Svc-Signature with it.";

/** What is sent of each field, and how it is read; what is absent there is left as it is. */
const READ: Readonly<Record<string, (text: string) => unknown>> = {
  url: (text) => text.trim(),
  events: wordsIn,
  description: (text) => text,
  headers: headersIn,
  concurrency: (text) => wholeIn(text, "concurrency"),
  timeoutMs: (text) => wholeIn(text, "timeoutMs"),
  standardWebhooks: (text) => text === "true",
};

/** Asks for a new endpoint, makes it and shows its secret. */
export function askEndpoint({ api, dialogs }: PageParts, done: () => void): void {
  dialogs.form({
    title: "Add an endpoint",
    submit: "Add it",
    fields: fieldsFor(undefined),
    run: async (values) => {
      const made = await api.administer("/endpoints", { body: readOf(values, Object.keys(READ)) });
      done();
      return { title: "The secret of the new endpoint", text: SIGNS, secret: textOf(made, "secret") };
    },
  });
}

/** Asks what is to be changed of an endpoint, and sends that alone: somebody else may change the rest. */
export function askEndpointEdit(
  { api, dialogs, messages }: PageParts,
  endpoint: Fields,
  done: () => void,
): void {
  const fields = fieldsFor(endpoint);
  dialogs.form({
    title: "Edit this endpoint",
    text: "What is changed holds from the next attempt on. Its secret stays.",
    submit: "Change it",
    fields,
    run: async (values) => {
      const changed = changedIn(fields, values);
      const body = readOf(values, changed);
      if (changed.includes("timeoutMs")) body["timeoutMs"] ??= null;
      if (values["noHeaders"] === "true") body["headers"] ??= null;
      if (Object.keys(body).length === 0) return void messages.say("Nothing was changed.");
      await api.administer(`/endpoints/${encodeURIComponent(textOf(endpoint, "id"))}`, {
        method: "PATCH",
        body,
      });
      done();
      return void messages.say("The endpoint is changed.");
    },
  });
}

function readOf(values: FormValues, names: readonly string[]): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const name of names) {
    if (READ[name] !== undefined) read[name] = READ[name](values[name] ?? "");
  }
  return read;
}

function fieldsFor(endpoint: Fields | undefined): FormField[] {
  const one = endpoint ?? { events: ["*"] };
  const headers = textsOf(one, "headers");
  const kept = headers.length === 0
    ? "values are not shown again"
    : `those here stay while this is empty, and are replaced otherwise: ${headers.join(", ")}`;
  return [
    {
      name: "url",
      label: "URL",
      value: textOf(one, "url"),
      required: true,
      hint: "https, and an address that the service may call",
    },
    {
      name: "events",
      label: "Events",
      value: textsOf(one, "events").join(" "),
      required: true,
      hint: "Kinds, prefixes such as workflow.*, or * for all, with blanks between them",
    },
    { name: "description", label: "Description", value: textOf(one, "description") },
    { name: "headers", label: "Headers", kind: "lines", hint: `Name: value, one a line; ${kept}` },
    ...headers.length === 0
      ? []
      : [{ name: "noHeaders", label: "Send none of those headers any more", kind: "check" } as const],
    {
      name: "concurrency",
      label: "Attempts at once",
      kind: "whole",
      value: numberText(one, "concurrency"),
      required: endpoint !== undefined,
      hint: endpoint === undefined ? "4 when empty" : "1 to 100",
    },
    {
      name: "timeoutMs",
      label: "Milliseconds for an attempt",
      kind: "whole",
      value: numberText(one, "timeoutMs"),
      hint: "WEBHOOK_TIMEOUT when empty",
    },
    {
      name: "standardWebhooks",
      label: "Send the headers of Standard Webhooks, too",
      kind: "check",
      value: flagOf(one, "standardWebhooks") ? "true" : "",
    },
  ];
}

function numberText(fields: Fields, name: string): string {
  return String(numberOf(fields, name) ?? "");
}
