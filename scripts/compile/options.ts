import { FlagError, HELP_FLAGS, parseFlags } from "../../src/cli/flags.ts";

/** The platforms that Deno compiles to. */
export const TARGETS = [
  "x86_64-unknown-linux-gnu",
  "aarch64-unknown-linux-gnu",
  "x86_64-apple-darwin",
  "aarch64-apple-darwin",
  "x86_64-pc-windows-msvc",
  "aarch64-pc-windows-msvc",
] as const;
/** The name of a platform. */
export type Target = typeof TARGETS[number];

/** Options of a compile. */
export interface CompileOptions {
  /** Platforms that were asked for; none of them means this one. */
  readonly targets: readonly Target[];
  /** Proves all that needs no base runtime, and leaves nothing behind. */
  readonly dry: boolean;
  /** Leaves out platforms without a base runtime, as long as there is one that has it. */
  readonly skipMissing: boolean;
  /** True if types are checked. */
  readonly check: boolean;
  readonly folder: string;
}

/** The usage of the task. */
export const USAGE = `usage: deno task compile [--target PLATFORM,... | --dry] [--output FOLDER] [--no-check]
  --target    platforms, also given several times, or all; without it, dist/weir for this machine:
              ${TARGETS.join("\n              ")}
  --output    the folder of the programs and of SHA256SUMS, dist when it is not given
  --dry       check the types, embed everything, look for it in the output, and leave nothing behind:
              needs no base runtime
  --no-check  leave the types unchecked`;

const FLAGS = {
  "target": "strings",
  "output": "string",
  "dry": "boolean",
  "no-check": "boolean",
  ...HELP_FLAGS,
} as const;

/** Reads the flags; absent when the usage is asked for. Throws `FlagError` that says what is expected. */
export function readCompileOptions(args: readonly string[]): CompileOptions | undefined {
  const { flags, rest } = parseFlags(args, FLAGS);
  if (flags["help"] === true || flags["h"] === true) return undefined;
  if (rest.length > 0) throw new FlagError(`Cannot compile "${rest[0]}": there is nothing but flags to name`);
  const targets = readTargets([flags["target"] ?? []].flat().map(String));
  const dry = flags["dry"] === true;
  if (dry && targets.length > 0) {
    throw new FlagError('Cannot read flag "--dry": it is the same for all platforms, leave --target out');
  }
  const folder = String(flags["output"] ?? "dist");
  if (folder === "") throw new FlagError('Cannot read flag "--output": it has to name a folder');
  return { targets, dry, skipMissing: false, check: flags["no-check"] !== true, folder };
}

/** Reads the platforms of `--target`. Throws `FlagError` for an unknown one. */
export function readTargets(texts: readonly string[]): readonly Target[] {
  const names = texts.flatMap((text) => text.split(","));
  if (names.includes("all") && names.length === 1) return TARGETS;
  const unknown = names.find((name) => !TARGETS.some((target) => target === name));
  if (unknown !== undefined) {
    const known = TARGETS.join(", ");
    throw new FlagError(`Cannot compile for "${unknown}": the platforms are ${known}; or "all" by itself`);
  }
  return TARGETS.filter((target) => names.includes(target));
}
