/** Every unit of time: its number in the published protocols and its length in seconds. */
export const UNITS = {
  SECOND: { number: 1, seconds: 1 },
  MINUTE: { number: 2, seconds: 60 },
  HOUR: { number: 3, seconds: 3_600 },
  DAY: { number: 4, seconds: 86_400 },
  MONTH: { number: 5, seconds: 2_592_000 },
  YEAR: { number: 6, seconds: 31_536_000 },
  WEEK: { number: 7, seconds: 604_800 },
} as const;

/** The name of a unit as the protocols write it. */
export type Unit = keyof typeof UNITS;

/** Units as a rule file may name them, shortest first. */
export const UNIT_NAMES = Object.keys(UNITS)
  .map((name) => name as Unit)
  .sort((a, b) => UNITS[a].seconds - UNITS[b].seconds);

const BY_NUMBER = new Map<number, Unit>(UNIT_NAMES.map((unit) => [UNITS[unit].number, unit]));

/** The unit with this number in the protocols; absent for 0 and for numbers that nobody knows. */
export function unitOfNumber(number: number): Unit | undefined {
  return BY_NUMBER.get(number);
}

/** The unit with this name in any letter case; absent for `unknown` and everything else. */
export function unitOfName(name: string): Unit | undefined {
  const upper = name.toUpperCase();
  return Object.hasOwn(UNITS, upper) ? upper as Unit : undefined;
}

/** How many of its units a window has; 1 where the unit is unknown. */
export function unitMultiplier(unit: Unit | undefined, windowSeconds: number): number {
  return unit === undefined ? 1 : windowSeconds / UNITS[unit].seconds;
}

/** Largest count that a rule or an override can name: an unsigned 32-bit integer. */
export const MAX_REQUESTS_PER_UNIT = 4_294_967_295;

/** Largest `unit_multiplier`. */
export const MAX_UNIT_MULTIPLIER = 4_294_967_295;
