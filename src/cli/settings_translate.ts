import { BACKEND_ALIASES } from "../settings/cache_table.ts";
import { effectiveSettings } from "../settings/effective_settings.ts";
import { type Environment, readEnvironment } from "../settings/read_settings.ts";
import { CommandError, readLines, type RunnableCommand } from "./command.ts";

/** A line of an environment file: a comment, or a variable with its value. */
const LINE = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s;
const PLAIN = /^[\w.,:/@%+=-]*$/;

/** `weir settings translate`: the environment of envoyproxy/ratelimit in the names of Weir. */
export const SETTINGS_TRANSLATE_COMMAND: RunnableCommand = {
  command: {
    words: "settings translate",
    args: [],
    doc: "print the environment of envoyproxy/ratelimit with the names of Weir",
    flags: {
      file: { value: "FILE", doc: "file with a NAME=VALUE per line (default: the environment)" },
    },
    notes:
      "It prints one NAME=VALUE per line, for a shell or an environment file. It does not print secrets: it names the\n" +
      "variables whose values you copy. Weir also reads the names of envoyproxy/ratelimit, so this is optional.",
  },
  async run({ flags }, options) {
    const { output } = options;
    const file = flags.text("file");
    const given = file === undefined ? options.environment : await fileEnvironment(file, options);
    const { environment, sources, notes } = readEnvironment(given);
    for (const { name, value, source, isSecret } of effectiveSettings(environment, sources)) {
      if (source === "default") continue;
      const supplier = source === "environment" ? name : source;
      if (value === undefined || isSecret) output.stderr(`${name}: copy the value of ${supplier}`);
      else output.stdout(`${name}=${shellText(nameOfBackend(name, value))}`);
    }
    for (const note of notes) if (note.includes("ignored")) output.stderr(`note: ${note}`);
    return 0;
  },
};

function nameOfBackend(name: string, value: string): string {
  return name === "BACKEND_TYPE" ? BACKEND_ALIASES.get(value) ?? value : value;
}

async function fileEnvironment(
  path: string,
  options: Parameters<RunnableCommand["run"]>[1],
): Promise<Environment> {
  const lines = (await readLines(path, options)).filter((line) => !line.startsWith("#"));
  return Object.fromEntries(lines.map((line, index) => {
    const [, name, value = ""] = LINE.exec(line) ?? [];
    // The line is not shown: it may hold a secret.
    if (name === undefined) {
      throw new CommandError(`Cannot read "${path}": variable ${index + 1} is no NAME=VALUE`, {
        isUsage: true,
      });
    }
    return [name, unquoted(value.trim())];
  }));
}

function unquoted(value: string): string {
  const [, quote, inner] = /^(["'])(.*)\1$/s.exec(value) ?? [];
  return quote === undefined ? value : inner ?? "";
}

function shellText(value: string): string {
  return PLAIN.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
