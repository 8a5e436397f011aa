/** Headers that hold nothing to hide. */
const OPEN_HEADERS = /^(?:x-svc-.*|webhook-.*|content-type|user-agent)$/i;
/** The word before the credentials; masking it would hide what a receiver says of the scheme. */
const SCHEME = /^(?:Basic|Bearer|Digest|Token|ApiKey)\s+/i;
/** Shorter texts are masked as whole words only: they also occur inside other text. */
const MIN_INNER_LENGTH = 4;
const MIN_BASE64_LENGTH = 5;
const MASK = "***";

/** A response body, or the first part of one. */
export interface ResponseText {
  readonly text: string;
  /** Whether more followed, and a secret may be cut at the end. */
  readonly isCut: boolean;
}

/** Masks what a receiver repeats of the endpoint's own headers, plain or encoded. */
export function maskResponse(
  { text, isCut }: ResponseText,
  headers: Readonly<Record<string, string>>,
): string {
  if (text === "") return text;
  const own = Object.entries(headers).filter(([name]) => !OPEN_HEADERS.test(name));
  const parts = own.flatMap(([, value]) => value.replace(SCHEME, "").split(/\s+/));
  // The longest first: one form may contain another.
  const forms = [...new Set(parts.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  const masked = forms.reduce(withoutForm, text);
  return isCut ? withoutCutForm(masked, forms) : masked;
}

function withoutForm(text: string, form: string): string {
  if (form.length >= MIN_INNER_LENGTH) return text.replaceAll(form, MASK);
  return text.replace(new RegExp(`(?<![A-Za-z0-9])${RegExp.escape(form)}(?![A-Za-z0-9])`, "g"), MASK);
}

/** Masks the beginning of a form at the end of the text. */
function withoutCutForm(text: string, forms: readonly string[]): string {
  const lengths = forms.map((form) => {
    let length = Math.min(form.length - 1, text.length);
    while (length > 0 && !text.endsWith(form.slice(0, length))) length--;
    return length;
  });
  const longest = Math.max(0, ...lengths);
  return longest === 0 ? text : `${text.slice(0, -longest)}${MASK}`;
}

/** How a text of visible ASCII characters may be repeated. */
function formsOf(part: string): readonly string[] {
  const json = JSON.stringify(part).slice(1, -1);
  const unicode = json.replace(/[<>&'+=]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return [
    ...[part, json, json.replaceAll("/", "\\/"), unicode, encodeURIComponent(part)],
    ...base64FormsOf(part),
  ];
}

/** The text alone in base64, and the characters that it always has inside a longer text, at each of three offsets. */
function base64FormsOf(part: string): readonly string[] {
  const inner = [0, 1, 2].map((offset) => {
    const bits = 8 * (offset + part.length);
    return btoa("\0".repeat(offset) + part).slice(Math.ceil(8 * offset / 6), Math.floor(bits / 6));
  });
  const alone = btoa(part);
  const forms = [
    alone,
    alone.replace(/=+$/, ""),
    ...inner.filter(({ length }) => length >= MIN_BASE64_LENGTH),
  ];
  return [...forms, ...forms.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"))];
}
