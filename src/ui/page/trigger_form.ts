import { textOf } from "./fields.ts";
import { descriptorsIn } from "./typed_text.ts";
import type { PageParts } from "./view.ts";

/** Asks for a new trigger, makes it and shows its key. */
export function askTrigger({ api, dialogs }: PageParts, done: () => void): void {
  dialogs.form({
    title: "Add a trigger",
    submit: "Add it",
    fields: [
      { name: "name", label: "Name", required: true, hint: "1 to 64 of a to z, 0 to 9 and -" },
      {
        name: "workflow",
        label: "Workflow",
        required: true,
        hint: "The name that stands in the workflow's file",
      },
      { name: "requireIdempotencyKey", label: "Refuse calls without an Idempotency-Key", kind: "check" },
      {
        name: "onBodyMismatch",
        label: "A known Idempotency-Key with another body",
        kind: "choice",
        choices: [["replay", "gets the first answer again"], ["reject", "is refused"]],
      },
      { name: "limit.domain", label: "Domain of its rate limit", hint: "No limit when empty" },
      {
        name: "limit.descriptors",
        label: "Descriptors of its rate limit",
        kind: "lines",
        hint: "One a line, such as customer={{ input.customer }}",
      },
      {
        name: "onLimitError",
        label: "When that decision fails",
        kind: "choice",
        choices: [["deny", "calls are refused"], ["allow", "calls are let through"]],
      },
    ],
    run: async (values) => {
      const domain = values["limit.domain"]?.trim() ?? "";
      const descriptors = descriptorsIn(values["limit.descriptors"] ?? "", "limit.descriptors");
      const made = await api.administer("/triggers", {
        body: {
          name: values["name"]?.trim(),
          workflow: values["workflow"]?.trim(),
          requireIdempotencyKey: values["requireIdempotencyKey"] === "true",
          onBodyMismatch: values["onBodyMismatch"],
          limit: domain === "" && descriptors.length === 0 ? undefined : { domain, descriptors },
          onLimitError: values["onLimitError"],
        },
      });
      done();
      return {
        title: "The key of the new trigger",
        text: `Callers of ${textOf(made, "name")} show it as their bearer token.`,
        secret: textOf(made, "key"),
      };
    },
  });
}
