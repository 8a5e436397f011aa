import { isJsonObject, parseJson } from "../base/exact_json.ts";
import { JsonText } from "../base/json_text.ts";
import { writeYaml } from "../yaml/write_yaml.ts";
import type { Command, CommandFlag, GivenFlags, Output } from "./command.ts";
import { FlagError } from "./flags.ts";
import { plainText } from "./plain_text.ts";

/** The values of `--output`. */
export const OUTPUT_FORMATS = ["table", "json", "yaml"] as const;

/** The values of `--output` where answers have identifiers. */
export const IDENTIFIER_FORMATS = [...OUTPUT_FORMATS, "id"] as const;

/** The flags of every command that prints a result. */
export const OUTPUT_FLAGS: Readonly<Record<string, CommandFlag>> = {
  output: { short: "o", value: "FORMAT", doc: "output format: table (default), json or yaml" },
  json: { doc: "the same as --output json" },
};

/** The same where answers have identifiers. */
export const IDENTIFIER_OUTPUT_FLAGS: Readonly<Record<string, CommandFlag>> = {
  ...OUTPUT_FLAGS,
  output: {
    short: "o",
    value: "FORMAT",
    doc: "output format: table (default), json, yaml, or id for identifiers alone",
  },
};

type ValueFormat = Exclude<(typeof IDENTIFIER_FORMATS)[number], "table">;

/** Prints the results of a command for programs; documents of YAML after the first begin with `---`. */
export class ValuePrinter {
  readonly #format: ValueFormat;
  readonly #output: Output;
  #isFirst = true;

  constructor(format: ValueFormat, output: Output) {
    this.#format = format;
    this.#output = output;
  }

  /** Prints a result, without its undefined fields. */
  print(value: object): void {
    this.printText(JSON.stringify(value, undefined, 2));
  }

  /** Prints a text of JSON, as it is, as YAML or only the identifiers in the field `id`; nothing for an empty one. */
  printText(json: string, id = "id"): void {
    if (json === "") return;
    if (this.#format === "json") return this.#write(json);
    if (this.#format === "id") {
      for (const one of identifiersIn(json, id)) this.#write(one);
      return;
    }
    if (!this.#isFirst) this.#output.stdout("---");
    this.#isFirst = false;
    this.#write(writeYaml(new JsonText(json)));
  }

  #write(text: string): void {
    for (const line of text.split("\n")) this.#output.stdout(line);
  }
}

/** The identifiers of a record, or of the items of a page. */
function identifiersIn(json: string, id: string): string[] {
  const value = parseJson(json);
  if (!isJsonObject(value)) return [];
  const items = value["items"] ?? [];
  const records = Array.isArray(items) && Object.hasOwn(value, "items") ? items : [value];
  return records.flatMap((record) => {
    const text = isJsonObject(record) ? record[id] : undefined;
    return typeof text === "string" ? [plainText(text)] : [];
  });
}

/**
 * Prints results for programs if the flags select it; undefined where people read them. Throws a `FlagError` for an
 * unknown format, and for two different ones.
 */
export function printerOf(
  flags: GivenFlags,
  output: Output,
  formats: Command["formats"] = IDENTIFIER_FORMATS,
): ValuePrinter | undefined {
  const isJson = flags.boolean("json") === true;
  const given = flags.text("output") ?? (isJson ? "json" : "table");
  const format = formats.find((one) => one === given);
  if (format === undefined) {
    throw new FlagError(`Invalid --output "${given}": expected ${formats.join(", ")}`);
  }
  if (isJson && format !== "json") throw new FlagError(`Cannot use --json with --output ${format}`);
  return format === "table" ? undefined : new ValuePrinter(format, output);
}
