const COUNT = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const RATE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });
const LATENCY = new Intl.NumberFormat("en-GB", { maximumSignificantDigits: 2 });
const SHARE = new Intl.NumberFormat("en-GB", { style: "percent", maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const EXACT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const MONTH_SECONDS = 30 * 86_400;
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Shown in place of a missing value. */
export const NOTHING = "–";

const STEPS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]] as const;

/** An integer with thousands separators. */
export function countText(count: number): string {
  return COUNT.format(count);
}

/** A rate per second, with one decimal below 100. */
export function rateText(rate: number | null): string {
  if (rate === null) return NOTHING;
  return (rate < 100 ? RATE : COUNT).format(rate);
}

/** A rate per second with three significant digits, which show a low one too. */
export function quotaRateText(rate: number | undefined): string {
  if (rate === undefined) return NOTHING;
  return rate < 100 ? String(Number(rate.toPrecision(3))) : COUNT.format(rate);
}

/** A share from 0 to 1 as a percentage. */
export function shareText(share: number | null): string {
  return share === null ? NOTHING : SHARE.format(share);
}

/** A duration in its two largest units, such as `2 h 5 min`. */
export function spanText(ms: number): string {
  let rest = Math.max(0, Math.floor(ms / 1_000));
  const parts: string[] = [];
  for (const [seconds, unit] of STEPS) {
    const whole = Math.floor(rest / seconds);
    rest -= whole * seconds;
    if (whole > 0) parts.push(`${whole} ${unit}`);
    else if (parts.length > 0) break;
  }
  return parts.slice(0, 2).join(" ") || "0 s";
}

/** A duration in milliseconds or seconds. */
export function tookText(ms: number): string {
  return ms < 1_000 ? `${Math.max(0, Math.round(ms))} ms` : `${RATE.format(ms / 1_000)} s`;
}

/** A latency in milliseconds, with decimals below 10. */
export function latencyText(ms: number | null): string {
  if (ms === null) return NOTHING;
  return ms < 10 ? `${LATENCY.format(ms)} ms` : tookText(ms);
}

/** A time in the time zone of the reader, without the date if it is today. */
export function momentText(at: number, now: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return NOTHING;
  const time = TIME.format(date);
  return dayOf(at) === dayOf(now) ? time : `${DAY.format(date)} ${time}`;
}

/** The distance of a time from now in one unit, such as `5 min ago`; the date beyond a month. */
export function agoText(at: number, now: number): string {
  const seconds = Math.round(Math.abs(now - at) / 1_000);
  const [length, unit] = STEPS.find(([length]) => seconds >= length) ?? [1, "s"];
  if (seconds === 0) return "now";
  if (seconds > MONTH_SECONDS) return DATE.format(at);
  const distance = `${Math.floor(seconds / length)} ${unit}`;
  return at > now ? `in ${distance}` : `${distance} ago`;
}

/** A time in full, with the time zone of the reader. */
export function exactTimeText(at: number): string {
  return EXACT.format(at);
}

/** The local date of a time. */
export function dayOf(at: number): string {
  return new Date(at).toDateString();
}

/** The start of an identifier. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** A request as a command of a shell. */
export function curlText(
  url: string,
  headers: readonly (readonly [name: string, value: string])[],
  body: string,
): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  // Without the meaning that `--data` gives to an @.
  return [`curl -X POST ${quoted(url)}`, ...lines, `--data-raw ${quoted(body)}`].join(" \\\n  ");
}
