import { isJsonType } from "../../base/body_text.ts";
import { CREDENTIAL_WORDS } from "../resources/trigger.ts";
import type { TriggerVerification } from "../model/records.ts";
import type { CallHeaders } from "../model/signature_header.ts";
import { headerNames, schemeOf } from "../model/signature_scheme.ts";

/** The kinds of bodies that a trigger may accept. */
type BodyKind = "json" | "form" | "text";

const FORM_TYPE = /^application\/x-www-form-urlencoded[\t ]*(?:;[^,]*)?$/i;
const TEXT_TYPE = /^(?:text\/[\w.+-]+|application\/xml|[\w.+-]+\/[\w.+-]+\+xml)[\t ]*(?:;[^,]*)?$/i;
const CREDENTIAL = new RegExp(`(?:^|-)(?:${CREDENTIAL_WORDS})(?:-|$)`);

/** The kind of a body by its content type; nothing for one that no trigger accepts. */
export function bodyKindOf(contentType: string | null | undefined): BodyKind | undefined {
  if (isJsonType(contentType)) return "json";
  if (FORM_TYPE.test(contentType ?? "")) return "form";
  return TEXT_TYPE.test(contentType ?? "") ? "text" : undefined;
}

/** Returns whether a trigger that accepts these kinds accepts a body; `array` accepts all of JSON. */
export function isKindAccepted(kind: BodyKind | undefined, accept: readonly string[] = ["json"]): boolean {
  return kind !== undefined && (accept.includes(kind) || kind === "json" && accept.includes("array"));
}

/** The input of a body, as JSON: a form becomes an object, and a text or a list its member `body`. */
export function inputOfBody(body: string, kind: BodyKind, accept: readonly string[] = ["json"]): string {
  if (kind === "text") return `{"body":${JSON.stringify(body)}}`;
  if (kind === "form") return inputOfForm(body);
  return accept.includes("array") && isJsonList(body) ? `{"body":${body}}` : body;
}

/** A name that is repeated becomes a list. */
function inputOfForm(body: string): string {
  const fields = Map.groupBy(new URLSearchParams(body), ([name]) => name);
  const members = [...fields].map(([name, pairs]) => {
    const values = pairs.map(([, value]) => value);
    return `${JSON.stringify(name)}:${JSON.stringify(values.length === 1 ? values[0] : values)}`;
  });
  return `{${members.join(",")}}`;
}

/** Without this check a text such as `[1],"a":2` would become several members. */
function isJsonList(body: string): boolean {
  if (!body.trimStart().startsWith("[")) return false;
  try {
    return Array.isArray(JSON.parse(body));
  } catch {
    return false;
  }
}

/** Returns whether a header proves who calls, by its name or because the signatures of a trigger use it. */
export function isCredentialHeader(name: string, verify: TriggerVerification | undefined): boolean {
  const signed = verify === undefined ? [] : headerNames(schemeOf(verify).signature.header);
  return CREDENTIAL.test(name.toLowerCase()) || signed.includes(name.toLowerCase());
}

/** The headers that a trigger passes to its workflow, as JSON; nothing for none. */
export function passedHeaders(
  { passHeaders = [], verify }: {
    readonly passHeaders?: readonly string[] | undefined;
    readonly verify?: TriggerVerification | undefined;
  },
  headers: CallHeaders | undefined,
): string | undefined {
  const passed = passHeaders.map((name) => name.toLowerCase()).flatMap((name) => {
    const value = headers?.get(name);
    // The list was checked against the signatures of that time.
    return value === undefined || isCredentialHeader(name, verify) ? [] : [[name, value] as const];
  });
  return passed.length === 0 ? undefined : JSON.stringify(Object.fromEntries(passed));
}
