import { steady } from "./example_text.ts";

/** Identifiers, keys and secrets. */
const MADE = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|svc[te]_[\w-]{43}|whsec_[\w+/]{43}=/g;
const KEY = /^svc[te]_/;

/**
 * Pairs each identifier, key or secret of a page with the one that the service has created. Two of them are a pair when
 * they are at the same place in the output on the page and in the output of the command.
 */
export class ExampleNames {
  /** What was created, by what the page has for it. */
  readonly #made: Map<string, string>;

  /** `known` are texts of the page and what replaces them, such as addresses. */
  constructor(known: Iterable<readonly [string, string]>) {
    this.#made = new Map(known);
  }

  /** A command as it is run. */
  made(command: string): string {
    return [...this.#made].reduce((text, [shown, made]) => text.replaceAll(shown, made), command);
  }

  /** What was printed, with the names of the page; `expected` is the output on the page. */
  read(printed: string, expected: string): { readonly text: string; readonly names: ExampleNames } {
    const names = new ExampleNames(this.#made);
    const made = printed.match(MADE) ?? [];
    for (const [index, shown] of (expected.match(MADE) ?? []).entries()) names.#add(shown, made[index]);
    return { text: names.#asShown(printed), names };
  }

  #add(shown: string, made: string | undefined): void {
    if (made === undefined || this.#made.has(shown) || [...this.#made.values()].includes(made)) return;
    this.#made.set(shown, made);
  }

  #asShown(printed: string): string {
    return [...this.#made].reduce((text, [shown, made]) => {
      const whole = text.replaceAll(made, shown);
      if (!KEY.test(shown)) return whole;
      // Lists show the end of a key.
      return whole.replaceAll(new RegExp(`(?<=  )${made.slice(-4)}(?=\\s)`, "g"), shown.slice(-4));
    }, printed);
  }
}

/** As `steady`, without times, sizes, hashes and the widths of columns. */
export function steadyRecords(text: string): string {
  return steady(text)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME")
    .replace(/"date":"\w{3}, /g, '"date":"DAY, ')
    .replace(/\b[0-9a-f]{64}\b/g, "HASH")
    .replace(/\b\d+ (bytes|ms|rows of audit)\b/g, "N $1")
    .replace(/ {2,}/g, "  ");
}
