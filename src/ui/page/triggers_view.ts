import { code } from "./pieces.ts";
import { type Fields, fieldsOf, recordsOf, textOf } from "./fields.ts";
import type { FormValues } from "./form.ts";
import { deleteAction, type RecordAction, type Row, switchAction } from "./record_action.ts";
import { askEdit, askNew, type RecordField, type RecordForm, settableFields } from "./record_form.ts";
import { recordListView } from "./record_list.ts";
import { CHALLENGE_TOKEN, TRIGGERS } from "./resources.ts";
import {
  generatedSecret,
  hasCredentials,
  isSigned,
  revokeSecretAction,
  rotateSecretAction,
  signatureOf,
  VERIFY_FIELDS,
  withVerification,
} from "./signed_triggers.ts";
import { NOTHING } from "./text.ts";
import { descriptorsIn, descriptorsText, headersIn, objectIn } from "./typed_text.ts";

/** The triggers that start workflows. */
export const triggersView = recordListView({
  resource: TRIGGERS,
  title: "Triggers",
  about:
    "What starts workflows. A call has a key or a signature. Its address is /api/v1/workflows/triggers/NAME.",
  next: [
    "A trigger starts a workflow of a file in WORKFLOW_DIRECTORY:",
    "weir triggers create order-intake --workflow order",
  ],
  columns: [
    { field: "name", as: "code", label: "Trigger" },
    "enabled",
    { field: "workflow", as: "code" },
    {
      label: "Limit",
      look: "name",
      cell: ({ record }) => [code(textOf(fieldsOf(record["limit"]), "domain") || NOTHING)],
    },
    "createdAt",
    {
      label: "Keys",
      cell: ({ record }) => {
        if (isSigned(record)) return signatureOf(record);
        return [code(recordsOf(record, "keys").map(keyName).join(" "))];
      },
    },
  ],
  actions: actionsOf,
  add: {
    label: "Add a trigger",
    open: (parts, added) =>
      askNew(parts, triggerForm, (trigger) => {
        const name = textOf(trigger, "name");
        if (isSigned(trigger)) return generatedSecret("The secret of the new trigger", trigger, name);
        return {
          title: "The key of the new trigger",
          text: bearerText(name),
          secret: textOf(trigger, "key"),
        };
      }, added),
  },
});

function bearerText(name: string): string {
  return `Callers of ${name} send it as their bearer token.`;
}

function keyName(key: Fields): string {
  return `…${textOf(key, "lastFour")}`;
}

function revokeAction({ parts, record, path, refresh }: Row, key: Fields): RecordAction {
  const id = textOf(key, "id");
  const name = keyName(key);
  return {
    label: `Revoke the key ${name}`,
    look: "danger",
    question: {
      title: "Revoke this key?",
      text: `Calls of ${textOf(record, "name")} with the key that ends in ${name} are answered with 401.`,
      go: "Revoke the key",
      isDangerous: true,
    },
    run: async () => {
      await parts.api.administer(`${path}/keys/${encodeURIComponent(id)}`, { method: "DELETE" });
      return "Key revoked.";
    },
    then: refresh,
  };
}

function actionsOf(row: Row): RecordAction[] {
  const { parts, record, refresh } = row;
  const name = textOf(record, "name");
  const edit = {
    title: `Edit ${name}`,
    text: "Changes apply from the next call on. The address and the keys stay the same.",
    edited: refresh,
  };
  return [
    { label: "Call", run: () => void askCall(row, name) },
    { label: "Edit", run: () => void askEdit(parts, triggerForm, record, edit) },
    switchAction(row, {
      enabled: `${name} enabled.`,
      disabled: `${name} disabled; calls are answered with 403.`,
    }),
    ...hasCredentials(record) ? [isSigned(record) ? rotateSecretAction(row) : rotateKeyAction(row)] : [],
    ...recordsOf(record, "keys").map((key) => revokeAction(row, key)),
    ...recordsOf(record, "secrets").map((secret) => revokeSecretAction(row, secret)),
    deleteAction(row, {
      noun: "trigger",
      text: `${name}, its keys or secrets, and its idempotency keys are deleted.`,
    }),
  ];
}

function rotateKeyAction({ parts: { api, dialogs }, record, path, refresh }: Row): RecordAction {
  const name = textOf(record, "name");
  return {
    label: "Rotate the key",
    question: {
      title: "Create a new key?",
      text:
        `${name} gets a second key. The old one works until it is revoked; of more than two, the oldest is deleted.`,
      go: "Create a new key",
    },
    run: async () => {
      const created = await api.administer(`${path}/rotate`, { method: "POST" });
      dialogs.secret({ title: "The new key", text: bearerText(name), secret: textOf(created, "key") });
      return undefined;
    },
    then: refresh,
  };
}

/** Asks for the input of a test call, and opens the execution. */
function askCall({ parts: { api, dialogs, messages, go }, path }: Row, name: string): void {
  dialogs.form({
    title: `Call ${name}`,
    text: "Starts the workflow without the key of the trigger. The limit of the trigger counts the call.",
    submit: "Call",
    fields: [
      { name: "data", label: "Input", kind: "lines", value: "{}", required: true, hint: "A JSON object" },
      { name: "event", label: "Kind of event", hint: "Named by the provider: execution.event" },
      { name: "headers", label: "Headers", kind: "lines", hint: "Of the call, one per line: Name: value" },
      {
        name: "Idempotency-Key",
        label: "Idempotency-Key",
        hint: "A call with the same key within 24 hours starts nothing",
      },
    ],
    run: async (values) => {
      const key = values["Idempotency-Key"]?.trim() ?? "";
      const event = values["event"]?.trim() ?? "";
      const named = event === "" ? "" : `,"event":${JSON.stringify(event)}`;
      const headers = headersIn(values["headers"] ?? "");
      const sent = headers === undefined ? "" : `,"headers":${JSON.stringify(headers)}`;
      const { executionId } = await api.administer(`${path}/call`, {
        body: `{"data":${objectIn(values["data"] ?? "", "data")}${named}${sent}}`,
        headers: key === "" ? {} : { "idempotency-key": key },
      });
      if (executionId === undefined) {
        messages.say("The conditions of the trigger do not hold: nothing started.");
        return undefined;
      }
      messages.say("The call was accepted.");
      go("executions", String(executionId));
      return undefined;
    },
  });
}

const triggerForm: RecordForm = {
  list: "triggers",
  noun: "trigger",
  fields: (trigger) => {
    const limit = fieldsOf(trigger?.["limit"]);
    const limitFields: RecordField[] = [
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
        parse: (text) => text,
      },
    ];
    return settableFields({ ...TRIGGERS.fields, ...CHALLENGE_TOKEN }, trigger, {
      enabled: [],
      limit: limitFields,
      onBodyMismatch: { choices: [["replay", "return the first response"], ["reject", "reject the call"]] },
      onLimitError: { choices: [["deny", "reject the call"], ["allow", "allow the call"]] },
      challenge: {
        choices: [
          ["", "no provider"],
          ...TRIGGERS.fields["challenge"]?.choices?.map((one) => [one, one] as const) ?? [],
        ],
        parse: (text) => text === "" ? null : text,
      },
      challengeToken: {
        isShown: (values) => textOf(values, "challenge") === "meta",
        parse: (text) => text === "" ? undefined : text,
      },
      verify: trigger === undefined ? VERIFY_FIELDS : [],
    });
  },
  complete: (sent, values) => {
    const { "limit.domain": domain, "limit.descriptors": list, ...body } = withVerification(sent);
    if (domain === undefined && list === undefined) return body;
    return { ...body, limit: limitIn(values) };
  },
};

/** A limit is sent whole, or null for no limit. */
function limitIn(values: FormValues): Fields | null {
  const domain = values["limit.domain"]?.trim() ?? "";
  const descriptors = descriptorsIn(values["limit.descriptors"] ?? "", "limit.descriptors");
  return domain === "" && descriptors.length === 0 ? null : { domain, descriptors };
}
