import { type EffectiveSetting, effectiveSettings } from "../settings/effective_settings.ts";
import { type Environment, readEnvironment, readSettings, SettingsError } from "../settings/read_settings.ts";
import { CHECK_EXIT_CODES, reportOf, resultLine } from "./check.ts";
import type { RunnableCommand } from "./command.ts";
import { OUTPUT_FLAGS } from "./output_format.ts";
import { TableText } from "./table_text.ts";

const COLUMNS = ["setting", "value", "source"];
const MASK = "(secret)";

/** `weir settings check`: the settings in the environment as the service would read them, without a start. */
export const SETTINGS_CHECK_COMMAND: RunnableCommand = {
  command: {
    words: "settings check",
    args: [],
    doc: "validate the settings in the environment, without starting the service",
    flags: {
      strict: { doc: "treat warnings as errors" },
      all: { doc: "also show the settings that the environment does not set" },
      ...OUTPUT_FLAGS,
    },
    notes:
      "It shows where each value comes from: the environment, the default, or the variable that names a secret file\n" +
      "or is an alias.\n" +
      "It does not show secrets, and does not connect to any service.",
    exitCodes: CHECK_EXIT_CODES,
  },
  run({ flags }, { environment, output }) {
    const { isStrict, printer } = reportOf(flags, output);
    const { errors, warnings, notes } = problemsOf(environment);
    const { environment: resolved, sources } = readEnvironment(environment);
    const all = effectiveSettings(resolved, sources);
    const given = all.filter(({ source }) => source !== "default");
    const settings = flags.boolean("all") === true ? all : given;
    const isValid = errors.length === 0 && (warnings.length === 0 || !isStrict);
    if (printer !== undefined) {
      const shown = notes.length === 0 ? {} : { notes };
      printer.print({ valid: isValid, errors, warnings, ...shown, settings: settings.map(forPrograms) });
      return Promise.resolve(isValid ? 0 : 1);
    }
    if (settings.length > 0) {
      for (const line of new TableText(COLUMNS).lines(settings.map(rowOf))) output.stdout(line);
    }
    for (const note of notes) output.stderr(`note: ${note}`);
    for (const error of errors) output.stderr(error);
    for (const warning of warnings) output.stderr(`warning: ${warning}`);
    const found = [{ count: given.length, one: "setting", many: "settings" }];
    const counts = { found, errors: errors.length, warnings: warnings.length };
    output.stdout(resultLine("environment", isValid, counts));
    return Promise.resolve(isValid ? 0 : 1);
  },
};

function problemsOf(
  environment: Environment,
): Pick<SettingsError, "warnings" | "notes"> & { readonly errors: readonly string[] } {
  try {
    const { warnings, notes } = readSettings(environment);
    return { errors: [], warnings, notes };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const { problems, warnings, notes } = error;
    return { errors: problems, warnings, notes };
  }
}

/** Without the value of a secret. */
function forPrograms({ name, value, isSecret, source }: EffectiveSetting) {
  return { name, value, secret: isSecret, source };
}

function rowOf({ name, value, whenUnset, source }: EffectiveSetting) {
  return { setting: name, value: value ?? (whenUnset === undefined ? MASK : `(${whenUnset})`), source };
}
