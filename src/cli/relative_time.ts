const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/;
const UNITS = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"]] as const;

/** The distance of a time in RFC 3339 from now, such as `3 min ago` and `in 20 s`; undefined for another text. */
export function relativeTime(text: string, now: number): string | undefined {
  const ms = TIME.test(text) ? Date.parse(text) - now : NaN;
  if (Number.isNaN(ms)) return undefined;
  const distance = Math.abs(ms);
  const unit = UNITS.find(([unitMs]) => distance >= unitMs);
  if (unit === undefined) return "now";
  const span = `${Math.floor(distance / unit[0])} ${unit[1]}`;
  return ms < 0 ? `${span} ago` : `in ${span}`;
}
