import { steady } from "./readme_text.ts";

/** Identifiers, keys and secrets. */
const MADE = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|svc[te]_[\w-]{43}|whsec_[\w+/]{43}=/g;
const KEY = /^svc[te]_/;

/**
 * Which identifier, key or secret of the README stands for which one that a service has made. They come to stand for
 * each other where they stand at the same place of what the README says and of what is printed.
 */
export class ReadmeNames {
  /** What was made, by what the README has for it. */
  readonly #made: Map<string, string>;

  /** `known` are texts of the README and what takes their place, such as addresses. */
  constructor(known: Iterable<readonly [string, string]>) {
    this.#made = new Map(known);
  }

  /** A command as it is run. */
  made(command: string): string {
    return [...this.#made].reduce((text, [readme, made]) => text.replaceAll(readme, made), command);
  }

  /** What was printed, as the README would have it; `wanted` is what the README says there. */
  read(printed: string, wanted: string): { readonly text: string; readonly names: ReadmeNames } {
    const names = new ReadmeNames(this.#made);
    const made = printed.match(MADE) ?? [];
    for (const [index, readme] of (wanted.match(MADE) ?? []).entries()) names.#add(readme, made[index]);
    return { text: names.#readme(printed), names };
  }

  #add(readme: string, made: string | undefined): void {
    if (made === undefined || this.#made.has(readme) || [...this.#made.values()].includes(made)) return;
    this.#made.set(readme, made);
  }

  #readme(printed: string): string {
    return [...this.#made].reduce((text, [readme, made]) => {
      const whole = text.replaceAll(made, readme);
      if (!KEY.test(readme)) return whole;
      // Lists show the end of a key.
      return whole.replaceAll(new RegExp(`(?<=  )${made.slice(-4)}(?=\\s)`, "g"), readme.slice(-4));
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
