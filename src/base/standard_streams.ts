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

/** True while the last line of the terminal is a status, which the next line replaces. */
let hasStatus = false;

/** The streams for commands: a line is written when the call returns. */
export const standardOutput = {
  stdout(line: string): void {
    clearStatus();
    try {
      writeLine(Deno.stdout, line);
    } catch (error) {
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
      // `weir … | head`: the reader has enough.
      Deno.exit(BROKEN_PIPE_EXIT);
    }
  },
  stderr(line: string): void {
    clearStatus();
    try {
      writeLine(Deno.stderr, line);
    } catch {
      // The exit code still reports the failure.
    }
  },
  /** A line that the next one replaces; absent without a terminal. */
  status: Deno.stderr.isTerminal() ? showStatus : undefined,
};

function showStatus(text: string): void {
  clearStatus();
  if (text === "") return;
  hasStatus = true;
  // A line that is wrapped could not be cleared; some terminals report no size.
  const { columns } = Deno.consoleSize();
  writeStatus(columns > 0 ? text.slice(0, columns - 1) : text);
}

function clearStatus(): void {
  if (!hasStatus) return;
  hasStatus = false;
  writeStatus("\r\x1b[K");
}

function writeStatus(text: string): void {
  try {
    Deno.stderr.writeSync(ENCODER.encode(text));
  } catch {
    // As for lines of standard error.
  }
}

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
