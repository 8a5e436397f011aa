import { joinBytes } from "../../base/bytes.ts";

/** The values of a call that a signed text may have, in addition to its headers and its body. */
const SIGNED_VALUES = ["id", "time", "method", "url", "path"] as const;

/** Name of a value of a call. */
export type SignedValue = (typeof SIGNED_VALUES)[number];

/** A part of a signed text. */
export type SignedPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly name: SignedValue }
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "body" };

/** The text of a template whose placeholders are known, and which has the body once. */
export const SIGNED_PATTERN = (() => {
  const part = `(?:[ -z|~]|\\{(?:${SIGNED_VALUES.join("|")}|header\\.[A-Za-z0-9-]{1,64})\\})*`;
  return `^${part}\\{body\\}${part}$`;
})();

const PLACEHOLDER = /\{([^{}]*)\}|[{}]|[^{}]+/g;
const HEADER = /^header\.([A-Za-z0-9-]{1,64})$/;
const KNOWN = [...["body", ...SIGNED_VALUES].map((name) => `{${name}}`), "{header.NAME}"].join(", ");

/** The parts of a template such as `{id}.{time}.{body}`, or its problem with the position. */
export function signedParts(template: string): readonly SignedPart[] | { readonly problem: string } {
  const parts: SignedPart[] = [];
  for (const { 0: text, 1: name, index } of template.matchAll(PLACEHOLDER)) {
    const at = `at character ${index + 1}`;
    if (name === undefined && /[{}]/.test(text)) {
      return { problem: `unexpected ${text} ${at}; expected a placeholder such as {body}` };
    }
    const wrong = name === undefined ? text.search(/[^ -~]/) : -1;
    if (wrong >= 0) {
      return { problem: `expected printable ASCII characters at character ${index + wrong + 1}` };
    }
    const part = name === undefined ? { kind: "text", text } as const : placeholderOf(name);
    if (part === undefined) return { problem: `unknown ${text} ${at}; expected one of ${KNOWN}` };
    const isSecond = part.kind === "body" && parts.some(({ kind }) => kind === "body");
    if (isSecond) return { problem: `a second {body} ${at}; expected it once` };
    parts.push(part);
  }
  if (parts.some(({ kind }) => kind === "body")) return parts;
  return { problem: "expected {body}: without it, the body is not signed" };
}

function placeholderOf(name: string): SignedPart | undefined {
  if (name === "body") return { kind: "body" };
  const value = SIGNED_VALUES.find((one) => one === name);
  if (value !== undefined) return { kind: "value", name: value };
  const [, header] = HEADER.exec(name) ?? [];
  return header === undefined ? undefined : { kind: "header", name: header.toLowerCase() };
}

/** The parts of a template that was checked when it was stored. */
export function knownParts(template: string): readonly SignedPart[] {
  const parts = signedParts(template);
  if (!("problem" in parts)) return parts;
  throw new TypeError(`Cannot read the template "${template}": ${parts.problem}`);
}

/** The place of the body among texts. */
export const BODY = Symbol("body");

/** A text, or the body. */
export type SignedPiece = string | typeof BODY;

/** The bytes of a signed text. Texts are Latin-1, as HTTP reads headers, so that these are the bytes that were sent. */
export function signedText(pieces: readonly SignedPiece[], body: Uint8Array): Uint8Array {
  return joinBytes(pieces.map((piece) => piece === BODY ? body : latin1(piece)));
}

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
