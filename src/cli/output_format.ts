import { JsonText } from "../base/json_text.ts";
import { writeYaml } from "../yaml/write_yaml.ts";
import type { CommandFlag, GivenFlags, Output } from "./command.ts";
import { FlagError } from "./flags.ts";

/** The values of `--output`. */
export const OUTPUT_FORMATS = ["table", "json", "yaml"] as const;

/** The flags of every command that prints a result. */
export const OUTPUT_FLAGS: Readonly<Record<string, CommandFlag>> = {
  output: { short: "o", value: "FORMAT", doc: "output format: table (default), json or yaml" },
  json: { doc: "the same as --output json" },
};

/** Prints the results of a command for programs; documents of YAML after the first begin with `---`. */
export class ValuePrinter {
  readonly #format: "json" | "yaml";
  readonly #output: Output;
  #isFirst = true;

  constructor(format: "json" | "yaml", output: Output) {
    this.#format = format;
    this.#output = output;
  }

  /** Prints a result, without its undefined fields. */
  print(value: object): void {
    this.printText(JSON.stringify(value, undefined, 2));
  }

  /** Prints a text of JSON, as it is or as YAML; nothing for an empty one. */
  printText(json: string): void {
    if (json === "") return;
    if (this.#format === "json") return this.#write(json);
    if (!this.#isFirst) this.#output.stdout("---");
    this.#isFirst = false;
    this.#write(writeYaml(new JsonText(json)));
  }

  #write(text: string): void {
    for (const line of text.split("\n")) this.#output.stdout(line);
  }
}

/**
 * Prints results for programs if the flags select it; undefined where people read them. Throws a `FlagError` for an
 * unknown format, and for two different ones.
 */
export function printerOf(flags: GivenFlags, output: Output): ValuePrinter | undefined {
  const isJson = flags.boolean("json") === true;
  const given = flags.text("output") ?? (isJson ? "json" : "table");
  const format = OUTPUT_FORMATS.find((one) => one === given);
  if (format === undefined) {
    throw new FlagError(`Invalid --output "${given}": expected ${OUTPUT_FORMATS.join(", ")}`);
  }
  if (isJson && format !== "json") throw new FlagError(`Cannot use --json with --output ${format}`);
  return format === "table" ? undefined : new ValuePrinter(format, output);
}
