import type { JsonObject, JsonValue } from "../base/exact_json.ts";
import { writeJson } from "../base/json_text.ts";
import type { CallFlag } from "./administration_flags.ts";
import type { AdministrationCommand } from "./administration_verbs.ts";
import type { GivenCommand, GivenFlags } from "./command.ts";
import { FlagError } from "./flags.ts";

/** One call of the administration. */
export interface AdministrationCall {
  readonly method: AdministrationCommand["method"];
  /** Behind `/api/v1`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** Sources of a call in addition to the command line. */
interface CallSources {
  readonly now: number;
  readonly readText: (path: string) => Promise<string>;
}

/** The call of a command line; throws a `FlagError` for a wrong one. */
export async function callOfCommand(
  command: AdministrationCommand,
  given: GivenCommand,
  sources: CallSources,
): Promise<AdministrationCall> {
  const parts = new CallParts();
  for (const [name, field] of Object.entries(command.fields ?? {})) {
    parts.put({ into: "body", field }, argument(command, given, name), name);
  }
  for (const [name, flag] of Object.entries(command.flags)) {
    const value = await valueOf(name, flag, given.flags, sources);
    if (value !== undefined) parts.put(placed(flag, given.flags), value, `--${name}`);
    else if (flag.isRequired === true) refuseUnlessInstead(command, name, flag.instead, given);
  }
  for (const flag of Object.values(command.flags)) {
    if (flag.otherwise !== undefined && !parts.has(flag)) parts.put(flag, flag.otherwise(sources.now), "");
  }
  if (command.isChange === true && !parts.hasBody) {
    throw new FlagError(`Cannot run "${command.words}": nothing to change`);
  }
  const { query, headers, body } = parts;
  return { method: command.method, path: pathOf(command, given), query, headers, body };
}

/** A flag with the field that the other flags give it. */
function placed(flag: CallFlag, given: GivenFlags): Pick<CallFlag, "into" | "field"> {
  const { moved, into } = flag;
  return moved !== undefined && given.text(moved.flag) === moved.value ? { into, field: moved.field } : flag;
}

function refuseUnlessInstead(
  { words }: AdministrationCommand,
  name: string,
  instead: string | undefined,
  { flags }: GivenCommand,
): void {
  if (instead !== undefined && flags.text(instead) !== undefined) return;
  const names = instead === undefined ? `--${name}` : `--${name} or --${instead}`;
  throw new FlagError(`Cannot run "${words}": ${names} is missing`);
}

/** An argument of the command line. */
export function argument(command: AdministrationCommand, given: GivenCommand, name: string): string {
  return given.args[command.args.indexOf(name)] ?? "";
}

/** The parts of a call from flags and arguments; each field can be set once. */
class CallParts {
  readonly query: Record<string, string> = {};
  readonly headers: Record<string, string> = {};
  readonly #body: Record<string, JsonValue> = {};
  readonly #takenBy = new Map<string, string>();

  get hasBody(): boolean {
    return Object.keys(this.#body).length > 0;
  }

  get body(): string | undefined {
    if (!this.hasBody) return undefined;
    const members = Object.entries(this.#body).map(([name, value]) => `"${name}":${writeJson(value)}`);
    return `{${members.join(",")}}`;
  }

  has({ into, field }: Pick<CallFlag, "into" | "field">): boolean {
    return this.#takenBy.has(`${into} ${field}`);
  }

  put({ into, field }: Pick<CallFlag, "into" | "field">, value: JsonValue, by: string): void {
    const place = `${into} ${field}`;
    // A field excludes a field inside of it.
    const rival = [...this.#takenBy].find(([taken]) =>
      taken === place || taken.startsWith(`${place}.`) || place.startsWith(`${taken}.`)
    );
    if (rival !== undefined) throw new FlagError(`Cannot use ${by} with ${rival[1]}`);
    this.#takenBy.set(place, by);
    if (into === "query") this.query[field] = String(value);
    else if (into === "header") this.headers[field] = String(value);
    else putField(this.#body, field.split("."), value);
  }
}

function putField(
  object: Record<string, JsonValue>,
  [name = "", ...inner]: string[],
  value: JsonValue,
): void {
  if (inner.length === 0) {
    object[name] = value;
    return;
  }
  const nested = { ...object[name] as JsonObject | undefined };
  putField(nested, inner, value);
  object[name] = nested;
}

async function valueOf(
  name: string,
  flag: CallFlag,
  given: GivenFlags,
  sources: CallSources,
): Promise<JsonValue | undefined> {
  if (flag.value === undefined) {
    const said = given.boolean(name);
    return flag.is === undefined ? said : said === true ? flag.is : undefined;
  }
  const named = flag.repeated === true
    ? given.texts(name)
    : [given.text(name)].filter((one) => one !== undefined);
  const [first] = named;
  if (first === undefined) return undefined;
  const texts = flag.isFile === true ? [await sources.readText(first)] : named;
  try {
    return flag.read === undefined ? first : flag.read(texts, sources.now);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    // Headers and payloads may hold secrets: their texts are not shown.
    const shown = flag.into === "body" && /^(?:headers|data)$/.test(flag.field)
      ? ""
      : ` "${named.join(" ")}"`;
    throw new FlagError(`Invalid --${name}${shown}: ${error.message}`);
  }
}

function pathOf(command: AdministrationCommand, given: GivenCommand): string {
  return command.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = argument(command, given, name);
    // A URL has no such segments: they would name another path.
    if (value === "." || value === "..") {
      throw new FlagError(`Invalid ${name} "${value}": expected an identifier`);
    }
    return encodeURIComponent(value);
  });
}
