import { wordsOf } from "./api.ts";
import { type Fields, flagOf, numberOf, textOf, textsOf } from "./fields.ts";
import type { FormField, FormValues } from "./form.ts";
import type { RecordForm } from "./record_form.ts";
import type { Row } from "./record_action.ts";
import { countText } from "./text.ts";
import { headersIn, momentIn, wholeIn, wordsIn } from "./typed_text.ts";

/** What a receiver does with the secret of an endpoint. */
export const SIGNS = "It signs deliveries: the receiver uses it to verify X-Svc-Signature.";

/** The form of an endpoint. */
export const endpointForm: RecordForm = {
  list: "endpoints",
  noun: "endpoint",
  fields: fieldsFor,
  read: readEndpoint,
};

const READ: Readonly<Record<string, (text: string) => unknown>> = {
  url: (text) => text.trim(),
  events: wordsIn,
  description: (text) => text,
  headers: headersIn,
  concurrency: (text) => wholeIn(text, "concurrency"),
  timeoutMs: (text) => wholeIn(text, "timeoutMs") ?? null,
  standardWebhooks: (text) => text === "true",
};

/** Asks when a new secret becomes active, creates it and shows it. */
export function askRotation({ parts: { api, dialogs }, record, path, refresh }: Row): void {
  dialogs.form({
    title: "Rotate the secret?",
    text: `A new secret for ${
      textOf(record, "url")
    } is created. The old one signs until the new one is active.`,
    submit: "Create a new secret",
    fields: [{
      name: "activeIn",
      label: "Active in",
      value: "24h",
      required: true,
      hint: "A duration such as 30m or 24h; 0 for now",
    }],
    run: async (values) => {
      const made = await api.administer(`${path}/rotate`, { body: { activeIn: values["activeIn"]?.trim() } });
      refresh();
      const at = new Date(textOf(made, "activeAt")).toLocaleString("en-GB");
      const text = `Active from ${at}. ${SIGNS}`;
      return { title: "The new secret", text, secret: textOf(made, "secret") };
    },
  });
}

/** Asks for a time range, counts the failed deliveries in it, asks again and retries them. */
export function askRecovery({ parts: { api, dialogs, messages }, record, path }: Row): void {
  const confirm = async (range: Fields, count: number) => {
    if (count === 0) return messages.say("No failed deliveries in this time range.");
    const text = `${countText(count)} deliveries will be retried.`;
    if (!await dialogs.ask({ title: "Retry them?", text, go: "Retry them" })) return;
    const recovered = await api.administer(`${path}/recover`, { body: { ...range, dryRun: false } });
    messages.say(`Retrying ${countText(numberOf(recovered, "count") ?? 0)} deliveries.`);
  };
  dialogs.form({
    title: "Recover failed deliveries",
    text: `Failed deliveries to ${textOf(record, "url")} are retried. They are counted first.`,
    submit: "Count them",
    fields: [
      { name: "since", label: "Created since", kind: "moment", required: true },
      { name: "until", label: "Created before", kind: "moment", required: true },
    ],
    run: async (values) => {
      const range = {
        since: momentIn(values["since"] ?? "", "since"),
        until: momentIn(values["until"] ?? "", "until"),
      };
      const counted = await api.administer(`${path}/recover`, { body: { ...range, dryRun: true } });
      void confirm(range, numberOf(counted, "count") ?? 0)
        .catch((error: unknown) => messages.warn(wordsOf(error)));
      return undefined;
    },
  });
}

function readEndpoint(values: FormValues, names: readonly string[]): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const name of names) {
    if (READ[name] !== undefined) read[name] = READ[name](values[name] ?? "");
  }
  if (values["noHeaders"] === "true") read["headers"] ??= null;
  return read;
}

function fieldsFor(endpoint: Fields | undefined): FormField[] {
  const one = endpoint ?? { events: ["*"] };
  const headers = textsOf(one, "headers");
  const kept = headers.length === 0
    ? "values are not shown again"
    : `leave empty to keep the current ones: ${headers.join(", ")}`;
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
      hint: "Kinds, prefixes such as workflow.*, or * for all, separated by spaces",
    },
    { name: "description", label: "Description", value: textOf(one, "description") },
    { name: "headers", label: "Headers", kind: "lines", hint: `Name: value, one per line; ${kept}` },
    ...headers.length === 0
      ? []
      : [{ name: "noHeaders", label: "Remove these headers", kind: "check" } as const],
    {
      name: "concurrency",
      label: "Concurrent attempts",
      kind: "whole",
      value: String(numberOf(one, "concurrency") ?? ""),
      required: endpoint !== undefined,
      hint: endpoint === undefined ? "4 when empty" : "1 to 100",
    },
    {
      name: "timeoutMs",
      label: "Timeout of an attempt in milliseconds",
      kind: "whole",
      value: String(numberOf(one, "timeoutMs") ?? ""),
      hint: "WEBHOOK_TIMEOUT when empty",
    },
    {
      name: "standardWebhooks",
      label: "Also send the Standard Webhooks headers",
      kind: "check",
      value: flagOf(one, "standardWebhooks") ? "true" : "",
    },
  ];
}
