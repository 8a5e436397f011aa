import { type Fields, fieldsOf, flagOf, recordsOf, textOf } from "./fields.ts";
import { changedIn, type FormField, type FormValues } from "./form.ts";
import { descriptorsIn, descriptorsText } from "./typed_text.ts";
import type { PageParts } from "./view.ts";

const NAME: FormField = {
  name: "name",
  label: "Name",
  required: true,
  hint: "1 to 64 of a to z, 0 to 9 and -",
};

/** Asks for a new trigger, makes it and shows its key. */
export function askTrigger({ api, dialogs }: PageParts, done: () => void): void {
  const fields = [NAME, ...fieldsFor({})];
  dialogs.form({
    title: "Add a trigger",
    submit: "Add it",
    fields,
    run: async (values) => {
      const sent = readOf(values, fields.map(({ name }) => name));
      const body = { ...sent, name: values["name"]?.trim(), limit: sent["limit"] ?? undefined };
      const made = await api.administer("/triggers", { body });
      done();
      return {
        title: "The key of the new trigger",
        text: `Callers of ${textOf(made, "name")} show it as their bearer token.`,
        secret: textOf(made, "key"),
      };
    },
  });
}

/** Asks what is to be changed of a trigger, and sends that alone. Its name stays, which is its address. */
export function askTriggerEdit(
  { api, dialogs, messages }: PageParts,
  trigger: Fields,
  done: () => void,
): void {
  const fields = fieldsFor(trigger);
  dialogs.form({
    title: `Edit ${textOf(trigger, "name")}`,
    text: "What is changed holds from the next call on. Its address and its keys stay.",
    submit: "Change it",
    fields,
    run: async (values) => {
      const body = readOf(values, changedIn(fields, values));
      if (Object.keys(body).length === 0) return void messages.say("Nothing was changed.");
      await api.administer(`/triggers/${encodeURIComponent(textOf(trigger, "id"))}`, {
        method: "PATCH",
        body,
      });
      done();
      return void messages.say("The trigger is changed.");
    },
  });
}

/** What is sent of these fields; a limit is sent whole, and null where there is to be none. */
function readOf(values: FormValues, names: readonly string[]): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const name of ["workflow", "onBodyMismatch", "onLimitError"]) {
    if (names.includes(name)) read[name] = values[name]?.trim();
  }
  if (names.includes("requireIdempotencyKey")) {
    read["requireIdempotencyKey"] = values["requireIdempotencyKey"] === "true";
  }
  if (names.some((name) => name.startsWith("limit."))) {
    const domain = values["limit.domain"]?.trim() ?? "";
    const descriptors = descriptorsIn(values["limit.descriptors"] ?? "", "limit.descriptors");
    read["limit"] = domain === "" && descriptors.length === 0 ? null : { domain, descriptors };
  }
  return read;
}

function fieldsFor(trigger: Fields): FormField[] {
  const limit = fieldsOf(trigger["limit"]);
  return [
    {
      name: "workflow",
      label: "Workflow",
      value: textOf(trigger, "workflow"),
      required: true,
      hint: "The name that stands in the workflow's file",
    },
    {
      name: "requireIdempotencyKey",
      label: "Refuse calls without an Idempotency-Key",
      kind: "check",
      value: flagOf(trigger, "requireIdempotencyKey") ? "true" : "",
    },
    {
      name: "onBodyMismatch",
      label: "A known Idempotency-Key with another body",
      kind: "choice",
      value: textOf(trigger, "onBodyMismatch") || "replay",
      choices: [["replay", "gets the first answer again"], ["reject", "is refused"]],
    },
    {
      name: "limit.domain",
      label: "Domain of its rate limit",
      value: textOf(limit, "domain"),
      hint: "No limit when empty",
    },
    {
      name: "limit.descriptors",
      label: "Descriptors of its rate limit",
      kind: "lines",
      value: descriptorsText(recordsOf(limit, "descriptors")),
      hint: "One a line, such as customer={{ input.customer }}",
    },
    {
      name: "onLimitError",
      label: "When that decision fails",
      kind: "choice",
      value: textOf(trigger, "onLimitError") || "deny",
      choices: [["deny", "calls are refused"], ["allow", "calls are let through"]],
    },
  ];
}
