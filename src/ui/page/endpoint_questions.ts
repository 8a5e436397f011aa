import { wordsOf } from "./api.ts";
import { SIGNS } from "./endpoint_form.ts";
import { fieldsOf, numberOf, textOf } from "./fields.ts";
import { countText } from "./text.ts";
import { momentIn } from "./typed_text.ts";
import type { PageParts } from "./view.ts";

/** Asks when a new secret is to sign, makes it and shows it. */
export function askRotation({ api, dialogs }: PageParts, path: string, url: string, done: () => void): void {
  dialogs.form({
    title: "Rotate the secret?",
    text: `A new secret for ${url} is made. The old one signs until the new one does.`,
    submit: "Make a new secret",
    fields: [{
      name: "activeIn",
      label: "It signs in",
      value: "24h",
      required: true,
      hint: "A duration such as 30m or 24h; 0 for now",
    }],
    run: async (values) => {
      const made = await api.administer(`${path}/rotate`, { body: { activeIn: values["activeIn"]?.trim() } });
      done();
      const at = new Date(textOf(made, "activeAt")).toLocaleString("en-GB");
      const text = `It signs from ${at} on. ${SIGNS}`;
      return { title: "The new secret", text, secret: textOf(made, "secret") };
    },
  });
}

/** Asks for a time range, counts the failed deliveries in it, asks again and makes them open. */
export function askRecovery(parts: PageParts, path: string, url: string): void {
  const { api, dialogs, messages } = parts;
  dialogs.form({
    title: "Recover failed deliveries",
    text: `Deliveries to ${url} that have failed are tried again. They are counted first.`,
    submit: "Count them",
    fields: [
      { name: "since", label: "Made since", kind: "moment", required: true },
      { name: "until", label: "Made before", kind: "moment", required: true },
    ],
    run: async (values) => {
      const range = {
        since: momentIn(values["since"] ?? "", "since"),
        until: momentIn(values["until"] ?? "", "until"),
      };
      const recover = (dryRun: boolean) => api.administer(`${path}/recover`, { body: { ...range, dryRun } });
      const counted = fieldsOf(await recover(true));
      void confirmRecovery(parts, numberOf(counted, "count") ?? 0, () => recover(false))
        .catch((error: unknown) => messages.warn(wordsOf(error)));
      return undefined;
    },
  });
}

async function confirmRecovery(
  { dialogs, messages }: PageParts,
  count: number,
  recover: () => Promise<unknown>,
): Promise<void> {
  if (count === 0) return messages.say("No failed delivery lies in that time.");
  const text = `${countText(count)} deliveries are tried again.`;
  if (!await dialogs.ask({ title: "Try them again?", text, go: "Try them again" })) return;
  const recovered = fieldsOf(await recover());
  messages.say(`${countText(numberOf(recovered, "count") ?? 0)} deliveries are tried again.`);
}
