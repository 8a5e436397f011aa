import { withSettingsTable } from "../src/settings/docs.ts";

/** Writes the table of settings into README.md; with `--check` only says by its exit code whether it is there. */
async function main(args: readonly string[]): Promise<number> {
  const path = new URL("../README.md", import.meta.url);
  const before = await Deno.readTextFile(path);
  const after = withSettingsTable(before);
  if (before === after) return 0;
  if (args.includes("--check")) {
    await say("The settings in README.md are not those of src/settings: run scripts/readme_settings.ts\n");
    return 1;
  }
  await Deno.writeTextFile(path, after);
  return 0;
}

async function say(text: string): Promise<void> {
  await new Blob([text]).stream().pipeTo(Deno.stderr.writable, { preventClose: true });
}

if (import.meta.main) Deno.exit(await main(Deno.args));
