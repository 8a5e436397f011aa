/** Characters that control a terminal, break a line or change its direction. */
const STEERING = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** A foreign text, safe to print in one line of a terminal. */
export function plainText(text: string): string {
  return text.replace(STEERING, (character) => {
    return SHORT[character] ?? `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`;
  });
}

/** A text of at most `most` characters; `…` marks a cut. */
export function shortened(text: string, most: number): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}
