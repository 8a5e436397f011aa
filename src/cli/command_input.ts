import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Environment } from "../settings/read_settings.ts";
import type { Output } from "./output.ts";

/** What a command works with; tests give their own. */
export interface CommandOptions {
  readonly environment: Environment;
  readonly output: Output;
  readonly clock: Clock;
  /** Standard input; read only where a command line asks for it. */
  readonly stdin: () => ReadableStream<Uint8Array>;
  /** Where `data/admin-token` is looked for; the working folder when absent. */
  readonly folder?: string | undefined;
  /** Ends a command that runs until it is told to; a signal of the process when absent. */
  readonly stop?: AbortSignal | undefined;
}

/** Something that cannot be done; the message is one line for people and holds no secret. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** Whether the command line asks for something that there is not: exit code 2 instead of 1. */
  readonly isUsage: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isUsage?: boolean } = {}) {
    super(message, options);
    this.isUsage = options.isUsage ?? false;
  }
}

/** Most bytes that are read from a file or from standard input. */
const MAX_BYTES = 64 * 1_024 * 1_024;

/** The bytes of a file, or of standard input for `-`. */
export async function readBytes(
  path: string,
  options: Pick<CommandOptions, "stdin">,
): Promise<Uint8Array<ArrayBuffer>> {
  if (path === "-") return await collected(options.stdin(), "standard input");
  try {
    const file = await Deno.open(path);
    return await collected(file.readable, path);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`Cannot read "${path}": ${errorText(error)}`, { cause: error });
  }
}

/** The text of a file, or of standard input for `-`. */
export async function readText(path: string, options: Pick<CommandOptions, "stdin">): Promise<string> {
  const bytes = await readBytes(path, options);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new CommandError(`Cannot read "${path}": it is not UTF-8`, { cause: error });
  }
}

/** The lines of a file that are not empty, without the spaces around them. */
export async function readLines(path: string, options: Pick<CommandOptions, "stdin">): Promise<string[]> {
  return (await readText(path, options)).split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

async function collected(stream: ReadableStream<Uint8Array>, name: string): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of stream) {
    length += part.byteLength;
    if (length > MAX_BYTES) {
      throw new CommandError(`Cannot read "${name}": it is longer than ${MAX_BYTES} bytes`);
    }
    parts.push(part);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}
