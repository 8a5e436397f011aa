/** The tables of docs/webhooks have what the service does. */
import { assertEquals } from "@std/assert";
import { SIGNATURE_REFUSALS, SIGNATURE_SCHEMES } from "../../../src/webhooks/model/trigger_verification.ts";
import { PROBLEM_CODES } from "../../../src/webhooks/api/problem_codes.ts";
import { SLOTS_MS } from "../../../src/webhooks/model/schedule.ts";
import { documentPages } from "../../harness/documents.ts";
import { tableRows } from "../../harness/document_tables.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { webhooksOpened } from "../../harness/webhook_examples.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";

const ROOT = new URL("../../../", import.meta.url);
/** More than `WEBHOOK_MAX_BODY_BYTES`. */
const LONG = " ".repeat(1_048_577);
const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000 };

Deno.test("docs/webhooks/deliveries.md has the retry schedule", () => {
  const times = rowsOf("docs/webhooks/deliveries.md", "Retry").map(([, when = ""]) =>
    /^(?:immediately|(\d+) (s|min|h))\b/.exec(when)
  );
  const offsets = times.map((time) => Number(time?.[1] ?? 0) * (UNITS_MS[time?.[2] ?? "s"] ?? NaN));
  assertEquals(offsets, SLOTS_MS);
});

for (
  const [source, type, page, head] of [
    ["model/records.ts", "DeliveryState", "deliveries.md", "State"],
    ["model/records.ts", "FailureReason", "deliveries.md", "Reason"],
    ["model/records.ts", "AttemptErrorKind", "deliveries.md", "Error kind"],
    ["model/records.ts", "ExecutionStatus", "workflows.md", "Status"],
    ["receiver.ts", "RefusalReason", "receiving.md", "`reason`"],
  ] as const
) {
  Deno.test(`docs/webhooks/${page} has a row for each ${type}`, async () => {
    const text = await Deno.readTextFile(new URL(`src/webhooks/${source}`, ROOT));
    const [, union = ""] = new RegExp(`export type ${type} =([^;]*);`).exec(text) ?? [];
    const names = [...union.matchAll(/"(\w+)"/g)].map(([, name]) => `\`${name}\``);
    const rows = rowsOf(`docs/webhooks/${page}`, head).map(([name]) => name);
    assertEquals([names.length > 0, rows.toSorted()], [true, names.toSorted()]);
  });
}

Deno.test("docs/webhooks/signed-triggers.md has each reason to refuse a signature, and each scheme", () => {
  const page = "docs/webhooks/signed-triggers.md";
  const sentences = Object.entries(SIGNATURE_REFUSALS).map(([reason, meaning]) => {
    return [`\`${reason}\``, `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`];
  });
  assertEquals(rowsOf(page, "Reason"), sentences);
  const schemes = rowsOf(page, "Scheme").map(([scheme = ""]) => scheme.replaceAll("`", ""));
  assertEquals(schemes, [...SIGNATURE_SCHEMES]);
});

Deno.test("docs/webhooks/triggers.md has the status of each code", () => {
  const rows = rowsOf("docs/webhooks/triggers.md", "Call").filter(([, , code = ""]) => /^`\w+`$/.test(code));
  const wrong = rows.filter(([, status, code = ""]) => {
    const [, known] = Object.entries(PROBLEM_CODES).find(([name]) => `\`${name}\`` === code) ?? [];
    return String(known?.[0]) !== status;
  });
  assertEquals([rows.length > 15, wrong], [true, []]);
});

/** A call of a trigger: the code of the answer, the trigger, and what differs from a valid call. */
type TriggerCase = readonly [
  code: string,
  trigger: "plain" | "strict" | "limited" | "disabled" | "lost",
  call: Readonly<{ method?: string; token?: string; headers?: Record<string, string>; body?: string }>,
];

/** In the order of the table: a call with two faults gets the code of the first. */
const TRIGGER_CASES: readonly TriggerCase[] = [
  ["executionId", "plain", {}],
  ["method_not_allowed", "plain", { method: "PUT", token: "x" }],
  ["unauthorized", "plain", { token: "svct_x", headers: { "content-type": "a/b" } }],
  ["not_found", "disabled", { token: "plain" }],
  ["trigger_disabled", "disabled", { headers: { "content-type": "a/b" } }],
  ["unsupported_media_type", "plain", { headers: { "content-type": "a/b" }, body: LONG }],
  ["too_large", "plain", { headers: { "idempotency-key": "" }, body: LONG }],
  ["invalid_idempotency_key", "plain", { headers: { "idempotency-key": "k".repeat(256) }, body: "{" }],
  ["idempotency_key_required", "strict", { body: "{" }],
  ["malformed_json", "plain", { body: "{" }],
  ["not_an_object", "plain", { body: `${"[".repeat(99)}${"]".repeat(99)}` }],
  ["too_deep", "plain", { body: `{"a":${"[".repeat(99)}${"]".repeat(99)}}` }],
  ["body_mismatch", "strict", { headers: { "idempotency-key": "known" }, body: '{"other":1}' }],
  ["limit_value_missing", "limited", {}],
  ["over_limit", "limited", { body: '{"who":"closed"}' }],
  ["workflow_unavailable", "lost", {}],
];

Deno.test("docs/webhooks/triggers.md has the answers to calls of triggers", async (test) => {
  await using folder = await WebhookFolder.make();
  const rules =
    "domain: d\ndescriptors: [{ key: who, value: closed, rate_limit: { unit: day, requests_per_unit: 0 } }]\n";
  await using weir = await ServeFixture.start({ env: folder.env, rules: { "d.yaml": rules } });
  const { http } = weir.running.addresses;
  await webhooksOpened(http);
  const keys = await createTriggers(http);
  const rows = rowsOf("docs/webhooks/triggers.md", "Call");
  for (const [code, name, { method = "POST", token = name, headers = {}, body = "{}" }] of TRIGGER_CASES) {
    await test.step(code, async () => {
      const response = await fetch(`http://${http}/api/v1/workflows/triggers/${name}`, {
        method,
        headers: {
          authorization: `Bearer ${keys[token] ?? token}`,
          "content-type": "application/json",
          ...headers,
        },
        body,
      });
      const answer = await response.json();
      const [, status] = rows.find(([, , cell = ""]) => new RegExp(`\\b${code}\\b`).test(cell)) ?? [];
      assertEquals([String(response.status), answer.code ?? Object.keys(answer)[0]], [status, code]);
    });
  }
});

/** Creates the triggers of the cases; returns their keys. */
async function createTriggers(http: string): Promise<Record<string, string>> {
  const keys: Record<string, string> = {};
  for (
    const [name, fields] of Object.entries({
      plain: {},
      strict: { requireIdempotencyKey: true, onBodyMismatch: "reject" },
      limited: { limit: { domain: "d", descriptors: [{ who: "{{ input.who }}" }] } },
      disabled: { enabled: false },
      lost: { workflow: "lost" },
    })
  ) {
    const { body } = await api(http, "/triggers", { body: { name, workflow: "echo", ...fields } });
    keys[name] = body.key;
  }
  const known = { token: keys["strict"] ?? "", idempotencyKey: "known", body: {} };
  await api(http, "/workflows/triggers/strict", known);
  return keys;
}

/** The rows of the tables of a page whose first column has this head. */
function rowsOf(path: string, head: string): (readonly string[])[] {
  const rows = documentPages().filter((page) => page.path === path).flatMap(tableRows);
  return rows.filter((row) => row.head === head).map(({ cells }) => cells);
}
