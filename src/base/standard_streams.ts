import type { Logger } from "./log.ts";
import type { ByteSink } from "./line_writer.ts";

/** The exit code of a program ended by SIGPIPE. */
const BROKEN_PIPE_EXIT = 141;
const ENCODER = new TextEncoder();

/** The streams as asynchronous sinks. */
export const standardSinks: { readonly stdout: ByteSink; readonly stderr: ByteSink } = {
  stdout: Deno.stdout,
  stderr: Deno.stderr,
};

/** The streams for commands: a line is written when the call returns. */
export const standardOutput = {
  stdout(line: string): void {
    try {
      writeLine(Deno.stdout, line);
    } catch (error) {
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
      // `weir … | head`: the reader has enough.
      Deno.exit(BROKEN_PIPE_EXIT);
    }
  },
  stderr(line: string): void {
    try {
      writeLine(Deno.stderr, line);
    } catch {
      // The exit code still reports the failure.
    }
  },
};

/** Logs what a package prints: `console` throws on a full disk and blocks on a pipe without a reader. */
export function captureConsole(logger: Logger): void {
  const log = (...values: unknown[]) => {
    logger.warning("A package printed a message", { text: values.map(String).join(" ") });
  };
  Object.assign(console, { debug: log, error: log, info: log, log, trace: log, warn: log });
}

function writeLine(stream: { writeSync(bytes: Uint8Array): number }, line: string): void {
  const bytes = ENCODER.encode(`${line}\n`);
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}
