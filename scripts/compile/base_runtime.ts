import { join } from "node:path";
import { CompileError } from "./failure.ts";
import type { Target } from "./options.ts";

const RELEASE = Deno.version.deno;
const BASE_WORDS = /\bdenort\b|\bbase binary\b/;

/** Sources of a base runtime. */
interface BaseSources {
  /** The value of `DENORT_BIN`; undefined when it is not set. */
  readonly named: string | undefined;
  readonly denoFolder: string;
  readonly complaint: string;
}

/** Throws `CompileError` when `DENORT_BIN` cannot be what is asked for. */
export async function checkNamedBase(named: string | undefined, targets: readonly Target[]): Promise<void> {
  if (named === undefined) return;
  const stat = await Deno.stat(named).catch(() => undefined);
  if (stat?.isFile !== true) {
    throw new CompileError(`Cannot compile with DENORT_BIN "${named}": there is no such file`);
  }
  if (targets.length < 2) return;
  const names = targets.join(", ");
  throw new CompileError(
    `Cannot compile for "${names}" with DENORT_BIN "${named}": it is the base runtime of one platform; ` +
      "name one --target, or unset it",
  );
}

/** The message for a compilation that failed because there is no base runtime; undefined for another reason. */
export async function missingBaseText(
  target: Target,
  { named, denoFolder, complaint }: BaseSources,
): Promise<string | undefined> {
  // Modules are looked for first, and what is wrong with them has nothing to do with a base runtime.
  if (named !== undefined || !BASE_WORDS.test(complaint)) return undefined;
  const name = `denort-${target}.zip`;
  const path = join(denoFolder, "dl/release", `v${RELEASE}`, name);
  const isThere = await Deno.stat(path).then(() => true, () => false);
  if (isThere) return undefined;
  return `Cannot compile for "${target}": the base runtime of Deno ${RELEASE} for it is not on this machine and ` +
    `could not be downloaded\n` +
    `  it is at https://dl.deno.land/release/v${RELEASE}/${name}; where that can be had, either\n` +
    `  put it at ${path}, unchanged (DENO_DIR names another folder than ${denoFolder}),\n` +
    `  or unpack it and set DENORT_BIN to the file denort\n` +
    `  deno task compile --dry proves everything else without it`;
}
