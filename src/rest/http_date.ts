/** The three forms of a date in HTTP; only the first one is still written, and all three are read. */
const FORMS = [
  /^[a-z]{3}, (?<day>\d{1,2}) (?<month>[a-z]{3}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) (?:GMT|UTC)$/i,
  /^[a-z]{6,9}, (?<day>\d\d)-(?<month>[a-z]{3})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) (?:GMT|UTC)$/i,
  /^[a-z]{3} (?<month>[a-z]{3}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/i,
];
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** The milliseconds since the Unix epoch of a date in HTTP; undefined for any other text. */
export function parseHttpDate(text: string, now: number): number | undefined {
  const fields = FORMS.map((form) => form.exec(text.trim())?.groups).find((groups) => groups !== undefined);
  if (fields === undefined) return undefined;
  const { day = "", month = "", year = "", time = "" } = fields;
  const [hours = 0, minutes = 0, seconds = 0] = time.split(":").map(Number);
  if (hours > 23 || minutes > 59 || seconds > 60) return undefined;
  const fullYear = year.length === 4 ? Number(year) : nearYear(Number(year), new Date(now).getUTCFullYear());
  const monthIndex = MONTHS.indexOf(month.toLowerCase());
  const at = new Date(Date.UTC(fullYear, monthIndex, Number(day)));
  if (monthIndex === -1 || at.getUTCMonth() !== monthIndex || Number(day) === 0) return undefined;
  return at.getTime() + ((hours * 60 + minutes) * 60 + seconds) * 1_000;
}

/** Two digits are a year at most 50 years ahead, and less than 50 years ago. */
function nearYear(digits: number, thisYear: number): number {
  const year = thisYear - thisYear % 100 + digits;
  if (year > thisYear + 50) return year - 100;
  return year <= thisYear - 50 ? year + 100 : year;
}
