import { CompileError, runToEnd } from "./failure.ts";

const COMMIT_LINE = 'const COMMIT: string = "";';

/** The commit of a working tree, such as `abc1234`, or `abc1234-dirty` where it was changed; absent without one. */
export async function commitOf(root: string): Promise<string | undefined> {
  try {
    // Other work in the same folder must not find the index locked.
    const git = (...args: string[]) => runToEnd("git", ["--no-optional-locks", ...args], { cwd: root });
    // A copy without its own history may stand within another one's.
    const prefix = await git("rev-parse", "--show-prefix");
    if (prefix.stdout.trim() !== "") return undefined;
    const head = await git("rev-parse", "--short=7", "HEAD");
    const status = await git("status", "--porcelain");
    if (head.code !== 0 || status.code !== 0) return undefined;
    return status.stdout === "" ? head.stdout.trim() : `${head.stdout.trim()}-dirty`;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** The text of `src/base/version.ts` with a commit in its place. */
export function stamped(text: string, commit: string): string {
  if (text.split(COMMIT_LINE).length !== 2) {
    throw new CompileError(`Cannot put the commit into "src/base/version.ts": it has no line ${COMMIT_LINE}`);
  }
  return text.replace(COMMIT_LINE, () => `const COMMIT: string = ${JSON.stringify(commit)};`);
}
