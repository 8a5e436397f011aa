import { errorText } from "../base/error_text.ts";
import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import { createHash } from "node:crypto";
import { readRuleFile, type RuleFile } from "./rule_file.ts";
import { getHeapStatistics } from "node:v8";

/** How rule files are read. */
export interface RuleFileReaderOptions {
  /** What is too much to read; what the memory of this process allows when absent. */
  readonly limits?: RuleFileLimits;
  /** Ends the reading; the load is then of no use. */
  readonly signal?: AbortSignal;
}

/** Reads the rule files of one look, one after the other, and stops where they become too much. */
export class RuleFileReader {
  /** Of the files that could be read, in the order in which they were asked for. */
  readonly sources: DomainSource[] = [];
  readonly problems: Problem[] = [];
  /** Whether there was no rule file so far. */
  isEmpty = true;
  readonly #signal: AbortSignal | undefined;
  readonly #limits: RuleFileLimits;
  readonly #digest = createHash("sha256");
  /** What is to be parsed, and the problems of what cannot be, in the order of the files. */
  readonly #files: ({ readonly path: string; readonly bytes: Uint8Array } | Problem)[] = [];
  #bytes = 0;
  #parts = 0;
  #isFull = false;

  constructor({ signal, limits }: RuleFileReaderOptions) {
    this.#signal = signal;
    this.#limits = limits ?? ruleFileLimits();
  }

  /** Reads the bytes of the file at the path, if it is one; what cannot be read is a problem. */
  async read(path: string): Promise<void> {
    if (this.#isFull || this.#signal?.aborted) return;
    const bytes = await this.#bytesOf(path);
    // It may have grown since it was measured.
    if (bytes === undefined || !this.#hasRoom(path, bytes.length)) return;
    this.#bytes += bytes.length;
    this.#files.push({ path, bytes });
    this.#digest.update(JSON.stringify([path, bytes.length])).update(bytes);
  }

  /** A text that differs where the files that were read differ. Ends the reading. */
  digest(): string {
    return this.#digest.digest("base64");
  }

  /** Parses what was read: `sources` and `problems` are complete then. */
  parse(): void {
    this.#isFull = false;
    for (const file of this.#files.splice(0)) {
      if ("text" in file) this.problems.push(file);
      else if (!this.#isFull) this.#parse(file.path, file.bytes);
    }
  }

  /** What the file holds; nothing when it is none, or is refused. */
  async #bytesOf(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const { isFile, size } = await Deno.stat(path);
      // A link may lead to a folder or a pipe, and reading a pipe would not end.
      if (!isFile) return undefined;
      this.isEmpty = false;
      if (!this.#hasRoom(path, size)) return undefined;
      return await Deno.readFile(path, this.#signal === undefined ? {} : { signal: this.#signal });
    } catch (error) {
      this.isEmpty = false;
      this.#refuse(path, await whyNot(path, error));
      return undefined;
    }
  }

  #hasRoom(path: string, size: number): boolean {
    const { fileBytes, allBytes } = this.#limits;
    if (size > fileBytes) {
      this.#refuse(path, `it is larger than ${fileBytes} bytes; make several of it`);
      return false;
    }
    this.#isFull = this.#bytes + size > allBytes;
    if (this.#isFull) {
      this.#refuse(path, `with it the rule files have more than ${allBytes} bytes; use fewer rules`);
    }
    return !this.#isFull;
  }

  #parse(path: string, bytes: Uint8Array): void {
    const { fileParts, allParts } = this.#limits;
    const file = readBytes(path, bytes, fileParts);
    this.#parts += file.parts;
    this.#isFull = this.#parts > allParts;
    if (this.#isFull) {
      const text =
        `with it the rule files have more than ${allParts} words, marks and line ends; use fewer rules`;
      this.problems.push(unreadable(path, text));
      return;
    }
    if (file.source !== undefined) this.sources.push(file.source);
    for (const problem of file.problems) this.problems.push(problem);
  }

  #refuse(path: string, state: string): void {
    const problem = unreadable(path, state);
    this.#files.push(problem);
    this.#digest.update(JSON.stringify(problem));
  }
}

function unreadable(path: string, state: string): Problem {
  return { severity: "error", at: path, path: "", text: `Cannot read the file: ${state}` };
}

function readBytes(path: string, bytes: Uint8Array, maxParts: number): RuleFile {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { source: undefined, problems: [unreadable(path, "it is not UTF-8; save it as UTF-8")], parts: 0 };
  }
  return readRuleFile(path, text, { maxParts });
}

/** Why a file could not be read, and what would be right. */
async function whyNot(path: string, error: unknown): Promise<string> {
  if (!(error instanceof Deno.errors.NotFound)) return fileErrorText(error);
  // The runtime names such a file with this mark in place of the bytes, and then does not find it.
  const isMisnamed = path.includes("\uFFFD") && await Deno.lstat(path).then(() => false, () => true);
  if (isMisnamed) return "its name is not UTF-8; rename it";
  return `${fileErrorText(error)}; correct the symbolic link, or remove it`;
}

/** Why the file system refused, in a few words and without the path. */
export function fileErrorText(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "it does not exist";
  if (error instanceof Deno.errors.PermissionDenied) return "permission denied; let this process read it";
  if (error instanceof Deno.errors.NotADirectory) return "it is not a folder; name a folder";
  return errorText(error);
}

/** What a folder of rule files may hold; reading more might end the process for want of memory. */
export interface RuleFileLimits {
  readonly fileBytes: number;
  /** Of all rule files of the folder together. */
  readonly allBytes: number;
  /** Words, marks and line ends of one file: what reading costs hangs on these. */
  readonly fileParts: number;
  readonly allParts: number;
}

const MEBIBYTE = 1024 * 1024;
/** Measured at 430 in the costliest of texts; the rest is for what was read before. */
const HEAP_BYTES_PER_PART = 550;
/** About what a file of the largest size has when it holds ordinary rules. */
const MAX_FILE_PARTS = 8_000_000;

/** The limits where the heap may grow to this size; that of this process when absent. */
export function ruleFileLimits(heapBytes: number = getHeapStatistics().heap_size_limit): RuleFileLimits {
  const fileParts = Math.min(MAX_FILE_PARTS, Math.floor(heapBytes / HEAP_BYTES_PER_PART));
  return { fileBytes: 16 * MEBIBYTE, allBytes: 32 * MEBIBYTE, fileParts, allParts: 2 * fileParts };
}
