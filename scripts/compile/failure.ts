/** A program that cannot be made; the message is meant for the person who asked for it. */
export class CompileError extends Error {
  override readonly name = "CompileError";
}

/** A program that cannot be made because its platform's base runtime cannot be had. */
export class MissingBaseError extends CompileError {}

/** Exit code and output of a program. */
interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a run to the end. */
interface RunOptions {
  readonly cwd: string;
  /** Next to the environment of this program. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Runs a program to its end; throws what the signal was aborted with. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  { cwd, env = {}, signal }: RunOptions,
): Promise<Ended> {
  signal?.throwIfAborted();
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    ...(signal === undefined ? {} : { signal }),
  }).output();
  signal?.throwIfAborted();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Runs the Deno that runs this; throws `CompileError` with what it wrote when it fails. */
export async function runDeno(what: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(Deno.execPath(), args, options);
  if (code === 0) return stdout;
  const command = `deno ${args[0] ?? ""}`;
  throw new CompileError(`Cannot ${what}: "${command}" ended with code ${code}\n${complaint(stderr)}`);
}

/** The output of a failed Deno without its own stack. */
export function complaint(stderr: string): string {
  return stderr.split("\n\nStack backtrace:")[0]?.trim() ?? "";
}
