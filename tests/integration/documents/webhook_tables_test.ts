/** The tables of docs/webhooks have what the service does. */
import { assertEquals } from "#assert";
import { SIGNATURE_REFUSALS } from "../../../src/webhooks/model/trigger_verification.ts";
import { TRIGGER_VERIFICATION } from "../../../src/webhooks/resources/trigger.ts";
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
  assertEquals(schemes, [...TRIGGER_VERIFICATION.scheme.choices]);
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
