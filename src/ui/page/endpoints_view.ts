import { wordsOf } from "./api.ts";
import { button, type Child, element, focusHeading } from "./element.ts";
import { EndpointActivity } from "./endpoint_activity.ts";
import {
  authenticationFields,
  authenticationText,
  tlsFields,
  tlsText,
  withCredentials,
} from "./endpoint_credentials.ts";
import { factsOf } from "./field_display.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf, textsOf, timeOf } from "./fields.ts";
import { badge, code, facts, moment, note, panel } from "./pieces.ts";
import { deleteAction, type RecordAction, type Row, switchAction } from "./record_action.ts";
import {
  askEdit,
  askNew,
  parsedValues,
  type RecordField,
  type RecordForm,
  requestFields,
  settableFields,
} from "./record_form.ts";
import { recordListView } from "./record_list.ts";
import { RecordView } from "./record_view.ts";
import { askReplay } from "./replays_view.ts";
import { ENDPOINT_RECOVERY, ENDPOINT_ROTATION, ENDPOINTS } from "./resources.ts";
import { countText, NOTHING, shareText, spanText, tookText } from "./text.ts";
import type { OpenedView, PageParts } from "./view.ts";
import { headersIn } from "./typed_text.ts";

/** The endpoints that events are delivered to. */
export const endpointsView = recordListView({
  resource: ENDPOINTS,
  title: "Endpoints",
  about: "Where events are delivered. Each endpoint has a signing secret, which is shown only once.",
  next: [
    "An endpoint is a URL that receives events:",
    "weir endpoints add https://example.com/hooks --event 'order.*'",
  ],
  columns: [
    { label: "State", cell: ({ record, now }) => stateOf(record, now) },
    { label: "Success, 24 h", look: "number", cell: ({ record }) => attemptsText(record, "24h") },
    "events",
    { label: "Filter", look: "name", cell: ({ record }) => [code(jsonText(record, "filter"))] },
    "description",
  ],
  record: { label: "Endpoint", name: (record) => textOf(record, "url"), open: openEndpoint },
  actions: actionsOf,
  add: {
    label: "Add an endpoint",
    open: (parts, added) =>
      askNew(parts, endpointForm, (endpoint) => ({
        title: "The secret of the new endpoint",
        text: SIGNS,
        secret: textOf(endpoint, "secret"),
      }), added),
  },
});

function openEndpoint(parts: PageParts, id: string): OpenedView {
  const activity = new EndpointActivity(parts, id);
  return new RecordView(parts, {
    list: "endpoints",
    id,
    actions: actionsOf,
    aside: activity.node,
    close: () => activity.close(),
    show: (endpoint, now) => {
      const timeoutMs = numberOf(endpoint, "timeoutMs");
      const overlapMs = numberOf(endpoint, "rotationOverlapMs");
      const filter = jsonText(endpoint, "filter");
      const templateText = jsonText(endpoint, "template");
      const own = {
        enabled: stateOf(endpoint, now),
        authentication: authenticationText(endpoint),
        tls: tlsText(endpoint, now),
        timeoutMs: timeoutMs === undefined ? "WEBHOOK_TIMEOUT" : tookText(timeoutMs),
        rateLimit: rateTextOf(endpoint) || undefined,
        standardWebhooks: undefined,
        rotationOverlapMs: overlapMs === undefined ? undefined : spanText(overlapMs),
        filter: filter === "" ? undefined : [code(filter)],
        format: textOf(endpoint, "format") || undefined,
        template: templateText === "" ? undefined : [code(templateText)],
        onGone: textOf(endpoint, "onGone") || undefined,
        attempts: attemptsOf(endpoint),
        secrets: undefined,
      };
      const shown = factsOf(ENDPOINTS.fields, endpoint, now, own);
      return [panel("Endpoint", facts(shown)), panel("Secrets", secretsOf(endpoint, now))];
    },
  });
}

/** Weir treats an endpoint as failing after this many consecutive failures. */
const FAILING_AFTER = 20;

/** Returns whether an endpoint is enabled, and since when it fails. */
function stateOf(endpoint: Fields, now: number): Child[] {
  const failingSince = timeOf(endpoint, "failingSince");
  const isEnabled = flagOf(endpoint, "enabled");
  const failures = numberOf(endpoint, "consecutiveFailures") ?? 0;
  const isFailing = isEnabled && failures >= FAILING_AFTER;
  const state = isFailing ? badge("failing", "warn") : badge(isEnabled ? "enabled" : "disabled");
  if (failingSince === undefined) return [state];
  const counted = `${countText(failures)} failure${failures === 1 ? "" : "s"}`;
  const reason = textOf(endpoint, "disabledReason");
  const by = reason === "gone" ? "by Weir, status 410: " : reason === "failing" ? "by Weir: " : "";
  return [
    state,
    element("span", { class: "note" }, `${by}${counted}, the first `, moment(failingSince, now)),
  ];
}

/** The success rate and the mean time of the last hour and day. */
function attemptsOf(endpoint: Fields): string | Child[] {
  const lines = ["1h", "24h"].map((period) => `${period}: ${attemptsText(endpoint, period)}`);
  return lines.map((line) => element("div", {}, line));
}

function attemptsText(endpoint: Fields, period: string): string {
  const attempts = recordsOf(endpoint, "attempts").find((one) => textOf(one, "period") === period);
  if (attempts === undefined) return NOTHING;
  const meanMs = numberOf(attempts, "meanMs");
  const took = meanMs === undefined ? "" : `, ${tookText(meanMs)}`;
  return `${shareText(numberOf(attempts, "successRate") ?? null)}${took}`;
}

/** The signing secrets with their states; a secret itself is shown only once. */
function secretsOf(endpoint: Fields, now: number): HTMLElement {
  const items = recordsOf(endpoint, "secrets").map((secret) => {
    const [state, activeAt] = [textOf(secret, "state"), timeOf(secret, "activeAt")];
    const both = flagOf(secret, "signs") && state !== "signing" ? badge("also signs", "good") : undefined;
    const word = state === "pending" ? "active " : "activated ";
    return element("li", {}, badge(state), both, element("span", {}, word, moment(activeAt, now)));
  });
  return element("ul", { class: "activity" }, ...items);
}

function actionsOf(row: Row): RecordAction[] {
  const { parts, record, refresh } = row;
  const url = textOf(record, "url");
  const edit = {
    title: "Edit this endpoint",
    text: "Changes apply from the next attempt on. The secret stays the same.",
    edited: refresh,
  };
  return [
    { label: "Test", run: () => testEndpoint(row) },
    { label: "Edit", run: () => void askEdit(parts, endpointForm, record, edit) },
    switchAction(row, {
      enabled: "Endpoint enabled.",
      disabled: "Endpoint disabled; its deliveries wait.",
      onEnabled: (endpoint) => askMissed(row, endpoint),
    }),
    { label: "Rotate the secret", run: () => void askRotation(row) },
    { label: "Recover failed deliveries", run: () => void askRecovery(row) },
    { label: "Replay events", run: () => void askReplay(row) },
    deleteAction(row, {
      noun: "endpoint",
      text: `Its secret is deleted, and pending deliveries to ${url} fail.`,
    }),
  ];
}

/** Sends a signed test event and shows each stage of the attempt. */
async function testEndpoint({ parts, path, show }: Row): Promise<undefined> {
  show(note("Sending a test event…"));
  const answer = await parts.api.administer(`${path}/check`, { method: "POST" }).catch((error: unknown) => {
    show();
    throw error;
  });
  const close = () => {
    show();
    focusHeading();
  };
  const stages = recordsOf(answer, "stages").map((one) => {
    const isOk = flagOf(one, "ok");
    const result = [badge(isOk ? "good" : "failed", isOk ? "good" : "bad"), " ", textOf(one, "detail")];
    return [textOf(one, "stage"), result] as const;
  });
  const result = panel(
    flagOf(answer, "ok")
      ? "The endpoint accepted a signed test event"
      : "The endpoint did not accept a test event",
    element("p", {}, code(textOf(answer, "url"))),
    facts(stages),
    button("Close", close, { look: "small" }),
  );
  show(result);
  // The button may be far below.
  result.scrollIntoView({ block: "nearest" });
}

const SIGNS = "It signs deliveries: the receiver uses it to verify X-Svc-Signature.";

const endpointForm: RecordForm = {
  list: "endpoints",
  noun: "endpoint",
  fields: (endpoint) => {
    const headers = textsOf(endpoint ?? {}, "headers");
    const kept = headers.length === 0
      ? "values are not shown again"
      : `leave empty to keep the current ones: ${headers.join(", ")}`;
    const headersField: RecordField = {
      name: "headers",
      label: "Headers",
      kind: "lines",
      value: "",
      hint: `Name: value, one per line; ${kept}`,
      parse: headersIn,
    };
    const noHeaders: RecordField = {
      name: "noHeaders",
      label: "Remove these headers",
      kind: "check",
      parse: (text) => text === "true",
    };
    return settableFields(ENDPOINTS.fields, endpoint, {
      events: { required: true },
      enabled: [],
      headers: headers.length === 0 ? [headersField] : [headersField, noHeaders],
      authentication: authenticationFields(endpoint),
      tls: tlsFields(endpoint),
      concurrency: { label: "Concurrent attempts" },
      rateLimit: { value: rateTextOf(endpoint) },
      timeoutMs: { label: "Timeout of an attempt in milliseconds" },
    });
  },
  complete: ({ noHeaders, ...sent }, values) => {
    const body = withCredentials(sent, values);
    return noHeaders === true ? { ...body, headers: body["headers"] ?? null } : body;
  },
};

/** The rate limit of an endpoint, such as `10/second`; empty for none. */
function rateTextOf(endpoint: Fields | undefined): string {
  const rate = fieldsOf(endpoint?.["rateLimit"]);
  const requestsPerUnit = numberOf(rate, "requestsPerUnit");
  return requestsPerUnit === undefined ? "" : `${requestsPerUnit}/${textOf(rate, "unit")}`;
}

/** A filter or a template as JSON; empty for none. */
function jsonText(endpoint: Fields, name: "filter" | "template"): string {
  return JSON.stringify(endpoint[name]) ?? "";
}

/** Asks when a new secret becomes active, creates it and shows it. */
function askRotation({ parts: { api, dialogs }, record, path, refresh }: Row): void {
  dialogs.form({
    title: "Rotate the secret?",
    text: `A new secret for ${
      textOf(record, "url")
    } is created. The old one signs until the new one is active.`,
    submit: "Create a new secret",
    fields: requestFields(ENDPOINT_ROTATION, { activeIn: { value: "24h", required: true } }),
    run: async (values) => {
      const created = await api.administer(`${path}/rotate`, {
        body: { activeIn: values["activeIn"]?.trim() },
      });
      refresh();
      const at = new Date(textOf(created, "activeAt")).toLocaleString("en-GB");
      const text = `Active from ${at}. ${SIGNS}`;
      return { title: "The new secret", text, secret: textOf(created, "secret") };
    },
  });
}

/** Asks whether to retry what an endpoint has missed while it failed or was disabled. */
async function askMissed({ parts: { api, dialogs, messages }, path }: Row, endpoint: Fields): Promise<void> {
  const missed = numberOf(endpoint, "missed") ?? 0;
  if (missed === 0) return;
  const text = `${countText(missed)} deliveries failed while it failed or was disabled.`;
  if (!await dialogs.ask({ title: "Retry what it has missed?", text, go: "Retry them" })) return;
  const range = { since: textOf(endpoint, "missedSince"), until: "0s" };
  const recovered = await api.administer(`${path}/recover`, { body: range });
  messages.say(`Retrying ${countText(numberOf(recovered, "count") ?? 0)} deliveries.`);
}

/** Asks for a time range, counts the failed deliveries in it, asks again and retries them. */
function askRecovery({ parts: { api, dialogs, messages }, record, path }: Row): void {
  const confirm = async (range: Fields, count: number) => {
    if (count === 0) return messages.say("No failed deliveries in this time range.");
    const text = `${countText(count)} deliveries will be retried.`;
    if (!await dialogs.ask({ title: "Retry them?", text, go: "Retry them" })) return;
    const recovered = await api.administer(`${path}/recover`, { body: { ...range, dryRun: false } });
    messages.say(`Retrying ${countText(numberOf(recovered, "count") ?? 0)} deliveries.`);
  };
  const fields = requestFields(ENDPOINT_RECOVERY);
  dialogs.form({
    title: "Recover failed deliveries",
    text: `Failed deliveries to ${textOf(record, "url")} are retried. They are counted first.`,
    submit: "Count them",
    fields,
    run: async (values) => {
      const range = parsedValues(fields, values);
      const counted = await api.administer(`${path}/recover`, { body: { ...range, dryRun: true } });
      void confirm(range, numberOf(counted, "count") ?? 0)
        .catch((error: unknown) => messages.warn(wordsOf(error)));
      return undefined;
    },
  });
}
