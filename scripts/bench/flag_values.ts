/** A number above 0 from a flag. */
export function positive(name: string, text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new RangeError(`Cannot read --${name} "${text}": it must be a number above 0`);
}

/** A whole number above 0 from a flag. */
export function positiveInteger(name: string, text: string): number {
  const value = positive(name, text);
  if (Number.isInteger(value)) return value;
  throw new RangeError(`Cannot read --${name} "${text}": it must be a whole number`);
}

/** One of the known words from a flag. */
export function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((known) => known === text);
  if (choice !== undefined) return choice;
  throw new RangeError(`Cannot read --${name} "${text}": it must be one of ${choices.join(", ")}`);
}

/** Some of the known words from a flag, in the order in which they are known. */
export function someOf<T extends string>(name: string, text: string, choices: readonly T[]): T[] {
  const chosen = text.split(",");
  for (const word of chosen) oneOf(name, word, choices);
  return choices.filter((known) => chosen.includes(known));
}
