import { errorText } from "./error_text.ts";

/** Above any secret, and below what would use much memory. */
const MAX_BYTES = 64 * 1024;
const NOT_A_FILE = "it is not a file";

/** Throws where a path does not lead to a file that may hold a secret. */
export function checkSecretFile({ isFile, size }: Pick<Deno.FileInfo, "isFile" | "size">): void {
  // Reading a named pipe may never end.
  if (!isFile) throw new Error(NOT_A_FILE);
  if (size > MAX_BYTES) throw new Error(`it has ${size} bytes; expected at most ${MAX_BYTES}`);
}

/** The reason why a secret cannot be read: a file may have become a folder after it was checked. */
export function secretProblem(error: unknown): string {
  return error instanceof Deno.errors.IsADirectory ? NOT_A_FILE : errorText(error);
}

/**
 * The secret in the text of a file, without a byte order mark and without the line break at the end. Throws where there
 * is none, without showing the text.
 */
export function secretOf(content: string): string {
  const text = content.replace(/^\ufeff/, "").replace(/\r?\n$/, "");
  if (text === "") throw new Error("the file is empty");
  // No secret setting has several lines, and a value with a line break could end a header or a command.
  if (/[\r\n\0]/.test(text)) throw new Error("the file has several lines; expected one");
  return text;
}
