import { type Fields, fieldsOf, flagOf, recordsOf, textOf } from "./fields.ts";
import type { FormField, FormValues } from "./form.ts";
import type { RecordForm } from "./record_form.ts";
import { descriptorsIn, descriptorsText } from "./typed_text.ts";

/** The form of a trigger. Its name is its address and cannot be changed. */
export const triggerForm: RecordForm = {
  list: "triggers",
  noun: "trigger",
  fields: (trigger) => trigger === undefined ? [NAME, ...fieldsFor({})] : fieldsFor(trigger),
  read: readTrigger,
};

const NAME: FormField = {
  name: "name",
  label: "Name",
  required: true,
  hint: "1 to 64 of a to z, 0 to 9 and -",
};

/** A limit is sent whole, or null for no limit. */
function readTrigger(values: FormValues, names: readonly string[]): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const name of ["name", "workflow", "onBodyMismatch", "onLimitError"]) {
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
      hint: "The name in the workflow file",
    },
    {
      name: "requireIdempotencyKey",
      label: "Reject calls without an Idempotency-Key",
      kind: "check",
      value: flagOf(trigger, "requireIdempotencyKey") ? "true" : "",
    },
    {
      name: "onBodyMismatch",
      label: "When a known Idempotency-Key has another body",
      kind: "choice",
      value: textOf(trigger, "onBodyMismatch") || "replay",
      choices: [["replay", "return the first response"], ["reject", "reject the call"]],
    },
    {
      name: "limit.domain",
      label: "Rate limit domain",
      value: textOf(limit, "domain"),
      hint: "No limit when empty",
    },
    {
      name: "limit.descriptors",
      label: "Rate limit descriptors",
      kind: "lines",
      value: descriptorsText(recordsOf(limit, "descriptors")),
      hint: "One per line, such as customer={{ input.customer }}",
    },
    {
      name: "onLimitError",
      label: "When the rate limit decision fails",
      kind: "choice",
      value: textOf(trigger, "onLimitError") || "deny",
      choices: [["deny", "reject the call"], ["allow", "allow the call"]],
    },
  ];
}
