import { type Environment, readSettings, SettingsError } from "../../../src/settings/read_settings.ts";

/** The problems that the environment is refused for; none when it is taken. */
export function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
