import type { Logger } from "./log.ts";
import type { ByteSink } from "./line_writer.ts";

/** The exit code of a program ended by SIGPIPE. */
const BROKEN_PIPE_EXIT = 141;
const MAX_ANSWER_BYTES = 256;
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
  /** Replaces the content of the terminal; absent without a terminal. */
  screen: Deno.stdout.isTerminal() ? showScreen : undefined,
  /** The line that a person answers; absent without a terminal. */
  ask: Deno.stdin.isTerminal() && Deno.stderr.isTerminal() ? ask : undefined,
};

/** Lines and columns that the terminal does not have are left out: they would scroll it. */
function showScreen(lines: readonly string[]): void {
  clearStatus();
  const { columns, rows } = Deno.consoleSize();
  const shown = rows > 1 ? lines.slice(0, rows - 1) : lines;
  const cut = (line: string) => columns > 0 ? [...line].slice(0, columns).join("") : line;
  writeText(Deno.stdout, `\x1b[H${shown.map((line) => `${cut(line)}\x1b[K\n`).join("")}\x1b[J`);
}

function ask(question: string): string {
  clearStatus();
  writeStatus(question);
  const bytes = new Uint8Array(MAX_ANSWER_BYTES);
  // The terminal hands over whole lines.
  const length = Deno.stdin.readSync(bytes) ?? 0;
  return new TextDecoder().decode(bytes.subarray(0, length)).trim();
}

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
  writeText(stream, `${line}\n`);
}

function writeText(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  const bytes = ENCODER.encode(text);
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}
