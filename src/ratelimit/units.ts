/** The units of time: the number in the protocols and the length in seconds. */
export const UNITS = {
  SECOND: { number: 1, seconds: 1 },
  MINUTE: { number: 2, seconds: 60 },
  HOUR: { number: 3, seconds: 3_600 },
  DAY: { number: 4, seconds: 86_400 },
  MONTH: { number: 5, seconds: 2_592_000 },
  YEAR: { number: 6, seconds: 31_536_000 },
  WEEK: { number: 7, seconds: 604_800 },
} as const;

/** The name of a unit in the protocols. */
export type Unit = keyof typeof UNITS;

/** All units, shortest first. */
export const UNIT_NAMES = Object.keys(UNITS)
  .map((name) => name as Unit)
  .sort((a, b) => UNITS[a].seconds - UNITS[b].seconds);

const BY_NUMBER = new Map<number, Unit>(UNIT_NAMES.map((unit) => [UNITS[unit].number, unit]));

/** The unit with this number in the protocols, if any. */
export function unitOfNumber(number: number): Unit | undefined {
  return BY_NUMBER.get(number);
}

/** The number of a unit in the protocols; 0 is `UNKNOWN`. */
export function numberOfUnit(unit: Unit | undefined): number {
  return unit === undefined ? 0 : UNITS[unit].number;
}

/** The unit with this name in any letter case, if any. */
export function unitOfName(name: string): Unit | undefined {
  const upper = name.toUpperCase();
  return Object.hasOwn(UNITS, upper) ? upper as Unit : undefined;
}

/** Units per window; 1 for an unknown unit. */
export function unitMultiplier(unit: Unit | undefined, windowSeconds: number): number {
  return unit === undefined ? 1 : windowSeconds / UNITS[unit].seconds;
}

/** The largest limit: an unsigned 32-bit integer. */
export const MAX_REQUESTS_PER_UNIT = 4_294_967_295;

/** The largest `unit_multiplier`. */
export const MAX_UNIT_MULTIPLIER = 4_294_967_295;
