/** The tables of docs/webhooks have what the service does. */
import { assertEquals } from "#assert";
import { SIGNATURE_REFUSALS } from "../../../src/webhooks/model/trigger_verification.ts";
import { ATTEMPT_FIELDS, DELIVERY_FIELDS } from "../../../src/webhooks/resources/delivery.ts";
import { EXECUTION_FIELDS } from "../../../src/webhooks/resources/execution.ts";
import { TRIGGER_VERIFICATION } from "../../../src/webhooks/resources/trigger_verification.ts";
import { PROBLEM_CODES } from "../../../src/webhooks/api/problem_codes.ts";
import { SLOTS_MS } from "../../../src/webhooks/model/schedule.ts";
import { documentPages } from "../../harness/documents.ts";
import { tableRows } from "../../harness/document_tables.ts";

const ROOT = new URL("../../../", import.meta.url);
/** More than `WEBHOOK_MAX_BODY_BYTES`. */
const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, min: 60_000, h: 3_600_000 };

Deno.test("docs/webhooks/deliveries.md has the retry schedule", () => {
  const times = rowsOf("docs/webhooks/deliveries.md", "Retry").map(([, when = ""]) =>
    /^(?:immediately|(\d+) (s|min|h))\b/.exec(when)
  );
  const offsets = times.map((time) => Number(time?.[1] ?? 0) * (UNITS_MS[time?.[2] ?? "s"] ?? NaN));
  assertEquals(offsets, SLOTS_MS);
});

for (
  const [field, page, head] of [
    [DELIVERY_FIELDS.state, "deliveries.md", "State"],
    [DELIVERY_FIELDS.reason, "deliveries.md", "Reason"],
    [ATTEMPT_FIELDS.errorKind, "deliveries.md", "Error kind"],
    [EXECUTION_FIELDS.status, "workflows.md", "Status"],
  ] as const
) {
  Deno.test(`docs/webhooks/${page}: the table "${head}" has a row for each value`, () => {
    assertEquals(namesOf(page, head), field.choices.map((name) => `\`${name}\``).toSorted());
  });
}

Deno.test("docs/webhooks/receiving.md has a row for each reason to refuse a delivery", async () => {
  const text = await Deno.readTextFile(new URL("src/webhooks/receiver.ts", ROOT));
  const [, union = ""] = /export type RefusalReason =([^;]*);/.exec(text) ?? [];
  const names = [...union.matchAll(/"(\w+)"/g)].map(([, name]) => `\`${name}\``);
  assertEquals([names.length > 0, namesOf("receiving.md", "`reason`")], [true, names.toSorted()]);
});

function namesOf(page: string, head: string): string[] {
  return rowsOf(`docs/webhooks/${page}`, head).map(([name = ""]) => name).toSorted();
}

Deno.test("docs/webhooks/signed-triggers.md has each reason to refuse a signature, and each scheme", () => {
  const page = "docs/webhooks/signed-triggers.md";
  const sentences = Object.entries(SIGNATURE_REFUSALS).map(([reason, meaning]) => {
    return [`\`${reason}\``, `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`];
  });
  assertEquals(rowsOf(page, "Reason"), sentences);
  const schemes = [...rowsOf(page, "Scheme"), ...rowsOf(page, "Own scheme")];
  const names = schemes.map(([scheme = ""]) => scheme.replaceAll("`", ""));
  assertEquals(names.toSorted(), TRIGGER_VERIFICATION.scheme.choices.toSorted());
});

Deno.test("docs/webhooks/triggers.md has the status of each code", () => {
  const rows = rowsOf("docs/webhooks/triggers.md", "Call").filter(([, , code = ""]) => /^`\w+`$/.test(code));
  const wrong = rows.filter(([, status, code = ""]) => {
    const [, known] = Object.entries(PROBLEM_CODES).find(([name]) => `\`${name}\`` === code) ?? [];
    return String(known?.[0]) !== status;
  });
  assertEquals([rows.length > 15, wrong], [true, []]);
});

/** The rows of the tables of a page whose first column has this head. */
function rowsOf(path: string, head: string): (readonly string[])[] {
  const rows = documentPages().filter((page) => page.path === path).flatMap(tableRows);
  return rows.filter((row) => row.head === head).map(({ cells }) => cells);
}
