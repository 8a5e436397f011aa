/** Headers that hold nothing to hide. */
const OPEN_HEADERS = /^(?:x-svc-.*|webhook-.*|content-type|user-agent)$/i;
/** The word before the credentials, which is no secret. */
const SCHEME = /^(?:Basic|Bearer|Digest|Token|ApiKey)\s+/i;
/** Shorter texts are masked as whole words only: they also occur inside other text. */
const MIN_INNER_LENGTH = 4;
const MIN_BASE64_LENGTH = 5;
/** Of a character of two units, such as `\ud83d\ude00`. */
const MAX_ESCAPE_LENGTH = 12;
const MASK = "***";
/** Most texts to mask, which an endpoint could otherwise have in any number; with more, a response is masked whole. */
const MAX_PARTS = 1_000;
/** Most comparisons, which a receiver could otherwise cause in any number; text that needs more is masked whole. */
const MAX_STEPS = 500_000;
/** Characters among which the search for a first one takes as long as a comparison. */
const CHARACTERS_PER_STEP = 64;

const encoder = new TextEncoder();

/** The comparisons that are left. */
interface Budget {
  steps: number;
}

/** A response body, or the first part of one. */
export interface ResponseText {
  readonly text: string;
  /** True if more followed, and a secret may be cut at the end. */
  readonly isCut: boolean;
}

/** The ways in which each character of a text may be written: plain first. */
type Form = readonly (readonly [plain: string, ...escapes: readonly string[]])[];

/** Masks what a receiver repeats of the endpoint's own headers and other secrets, plain, escaped or encoded. */
export function maskResponse(
  { text, isCut }: ResponseText,
  headers: Readonly<Record<string, string>>,
  secrets: readonly string[] = [],
): string {
  if (text === "") return text;
  const own = Object.entries(headers).filter(([name]) => !OPEN_HEADERS.test(name));
  const parts = new Set([...own.flatMap(([, value]) => partsOf(value.replace(SCHEME, ""))), ...secrets]);
  parts.delete("");
  if (parts.size > MAX_PARTS) return MASK;
  const texts = new Set([...parts].flatMap((part) => [part, ...base64FormsOf(part)]));
  // The longest first: one text may contain another.
  const forms = [...texts].sort((a, b) => b.length - a.length).map(formOf(new Map()));
  const budget: Budget = { steps: MAX_STEPS };
  const inner = forms.reduce((rest, form) => withoutForm(rest, form, budget), text);
  const masked = isCut ? withoutCutForm(inner, forms, budget) : inner;
  return budget.steps > 0 ? masked : MASK;
}

/** The words of a header, and the values of its pairs. */
function partsOf(value: string): readonly string[] {
  const values = value.split(/[;,\s]+/).map((pair) => pair.replace(/^[^=]*=?/, "").replace(/^"|"$/g, ""));
  return [...value.split(/\s+/), ...values.filter(({ length }) => length >= MIN_INNER_LENGTH)];
}

function withoutForm(text: string, form: Form, budget: Budget): string {
  const isWord = form.length < MIN_INNER_LENGTH;
  let masked = "";
  let from = 0;
  budget.steps -= text.length / CHARACTERS_PER_STEP;
  if (budget.steps <= 0) return text;
  for (const at of startsOf(text, form)) {
    if (at < from) continue;
    const end = endOf(text, at, form, budget);
    if (end === undefined || isWord && (isAlphanumeric(text[at - 1]) || isAlphanumeric(text[end]))) continue;
    masked += text.slice(from, at) + MASK;
    from = end;
  }
  return masked + text.slice(from);
}

/** Masks the beginning of a form at the end of the text. */
function withoutCutForm(text: string, forms: readonly Form[], budget: Budget): string {
  const first = Math.min(text.length, ...forms.flatMap((form) => cutStartsOf(text, form, budget)));
  return first === text.length ? text : `${text.slice(0, first)}${MASK}`;
}

function cutStartsOf(text: string, form: Form, budget: Budget): readonly number[] {
  const tail = Math.max(0, text.length - MAX_ESCAPE_LENGTH * form.length);
  const starts = startsOf(text.slice(tail), form).map((at) => tail + at);
  // Its first character may be cut as well.
  for (let length = 1; length < MAX_ESCAPE_LENGTH; length++) starts.push(text.length - length);
  return starts.filter((at) => at >= 0 && isCutForm(text, at, form, budget));
}

/** The place of a form's first character, in any way. */
function startsOf(text: string, [ways = [""]]: Form): number[] {
  const patterns = ways.map((way, index) => index === 0 ? RegExp.escape(way) : `(?i:${RegExp.escape(way)})`);
  return [...text.matchAll(new RegExp(`(?=${patterns.join("|")})`, "g"))].map(({ index }) => index);
}

/** The end of the form that begins here. */
function endOf(text: string, at: number, form: Form, budget: Budget): number | undefined {
  let places: readonly number[] = [at];
  for (const ways of form) {
    places = nextPlaces(text, places, ways, budget);
    if (places.length === 0) return undefined;
  }
  return Math.max(...places);
}

/** True if the text ends in the middle of a form that begins here. */
function isCutForm(text: string, at: number, form: Form, budget: Budget): boolean {
  let places: readonly number[] = [at];
  for (const ways of form) {
    const isCut = places.some((place) => {
      const rest = text.slice(place, place + MAX_ESCAPE_LENGTH);
      return place + rest.length === text.length &&
        ways.some((way) => rest.length < way.length && way.startsWith(rest.toLowerCase()));
    });
    if (isCut) return true;
    places = nextPlaces(text, places, ways, budget);
    if (places.length === 0) return false;
  }
  return false;
}

/** The ends of a character that begins at one of these places. All are kept: `\` may be half of an escape. */
function nextPlaces(
  text: string,
  places: readonly number[],
  [plain, ...escapes]: Form[number],
  budget: Budget,
): readonly number[] {
  budget.steps -= 1 + places.length;
  if (budget.steps <= 0) return [];
  const next = new Set<number>();
  for (const place of places) {
    if (text.startsWith(plain, place)) next.add(place + plain.length);
    for (const escape of escapes) {
      const end = place + escape.length;
      if (text.slice(place, end).toLowerCase() === escape) next.add(end);
    }
  }
  return [...next];
}

/** Makes the form of a text; `known` has the ways of the characters of others. */
function formOf(known: Map<string, Form[number]>): (text: string) => Form {
  return (text) =>
    [...text].map((character) => {
      const ways = known.get(character) ?? waysOf(character);
      known.set(character, ways);
      return ways;
    });
}

/** The ways to write a character: plain, and escaped for JSON or a URL, in lower case. */
function waysOf(character: string): Form[number] {
  const units = character.split("").map((unit) => unit.charCodeAt(0).toString(16));
  const bytes = [...encoder.encode(character)].map((byte) => byte.toString(16));
  const escapes = [
    units.map((hex) => `\\u${hex.padStart(4, "0")}`).join(""),
    bytes.map((hex) => `%${hex.padStart(2, "0")}`).join(""),
  ];
  const isPlain = isAlphanumeric(character) || bytes.length > 1;
  return isPlain ? [character, ...escapes] : [character, `\\${character}`, ...escapes];
}

function isAlphanumeric(character: string | undefined): boolean {
  return character !== undefined && /^[A-Za-z0-9]$/.test(character);
}

/** The text alone in base64, and the characters that it always has inside a longer text, at each of three offsets. */
function base64FormsOf(text: string): readonly string[] {
  // One character for each byte.
  const part = String.fromCharCode(...encoder.encode(text));
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
