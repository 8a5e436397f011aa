import { errorText } from "../base/error_text.ts";
import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Problem } from "../base/problem.ts";
import { createHash } from "node:crypto";
import { readRuleFile, type RuleFile } from "./rule_file.ts";
import { yamlText } from "../yaml/document.ts";
import { getHeapStatistics } from "node:v8";

/** Options of `RuleFileReader`. */
export interface RuleFileReaderOptions {
  /** By default, what the memory of this process allows. */
  readonly limits?: RuleFileLimits;
  /** Cancels the load, whose result is then useless. */
  readonly signal?: AbortSignal;
}

/** Reads the rule files of one load, one after the other, up to a limit. */
export class RuleFileReader {
  /** Of the readable files, in the order of the calls. */
  readonly sources: DomainSource[] = [];
  readonly problems: Problem[] = [];
  /** True if no rule file was found. */
  isEmpty = true;
  /** Identify the content of each file, or why it is refused, by its path. */
  readonly digests: (readonly [path: string, digest: string])[] = [];
  readonly #signal: AbortSignal | undefined;
  readonly #limits: RuleFileLimits;
  /** Files to parse, and problems of those that cannot be, in order. */
  readonly #files: ({ readonly path: string; readonly bytes: Uint8Array<ArrayBuffer> } | Problem)[] = [];
  #bytes = 0;
  #parts = 0;
  #isFull = false;

  constructor({ signal, limits }: RuleFileReaderOptions) {
    this.#signal = signal;
    this.#limits = limits ?? ruleFileLimits();
  }

  /** Reads the file at the path, if it is a regular file; an unreadable one is a problem. */
  async read(path: string): Promise<void> {
    if (this.#isFull || this.#signal?.aborted) return;
    const bytes = await this.#bytesOf(path);
    // It may have grown since `stat`.
    if (bytes === undefined || !this.#hasRoom(path, bytes.length)) return;
    this.#bytes += bytes.length;
    this.#files.push({ path, bytes });
    this.digests.push([path, createHash("sha256").update(bytes).digest("base64")]);
  }

  /** The size of the files that were read. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Parses the files; completes `sources` and `problems`. */
  parse(): void {
    this.#isFull = false;
    for (const file of this.#files.splice(0)) {
      if ("text" in file) this.problems.push(file);
      else if (!this.#isFull) this.#parse(file.path, file.bytes);
    }
  }

  /** The content of the file; undefined when it is not a regular file or is refused. */
  async #bytesOf(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    try {
      const { isFile, size } = await Deno.stat(path);
      // A link may lead to a folder, or to a pipe, whose reading would not end.
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

  #parse(path: string, bytes: Uint8Array<ArrayBuffer>): void {
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
    this.digests.push([path, state]);
  }
}

function unreadable(path: string, state: string): Problem {
  return { severity: "error", at: path, path: "", text: `Cannot read the file: ${state}` };
}

function readBytes(path: string, bytes: Uint8Array<ArrayBuffer>, maxParts: number): RuleFile {
  const text = yamlText(bytes);
  if (text !== undefined) return readRuleFile(path, text, { maxParts });
  return { source: undefined, problems: [unreadable(path, "it is not UTF-8; save it as UTF-8")], parts: 0 };
}

async function whyNot(path: string, error: unknown): Promise<string> {
  if (!(error instanceof Deno.errors.NotFound)) return fileErrorText(error);
  // The runtime replaces invalid bytes of a name by this character, and then does not find the file.
  const isMisnamed = path.includes("\uFFFD") && await Deno.lstat(path).then(() => false, () => true);
  if (isMisnamed) return "its name is not UTF-8; rename it";
  return `${fileErrorText(error)}; correct the symbolic link, or remove it`;
}

/** The cause of a file system error in a few words, without the path. */
export function fileErrorText(error: unknown): string {
  if (error instanceof Deno.errors.NotFound) return "it does not exist";
  if (error instanceof Deno.errors.PermissionDenied) return "permission denied; let this process read it";
  if (error instanceof Deno.errors.NotADirectory) return "it is not a folder";
  if (error instanceof Deno.errors.IsADirectory) return "it is not a file";
  return errorText(error);
}

/** Bounds of a folder of rule files; more could exhaust the memory of the process. */
interface RuleFileLimits {
  readonly fileBytes: number;
  readonly allBytes: number;
  /** Words, marks and line ends of one file, which determine the cost of reading. */
  readonly fileParts: number;
  readonly allParts: number;
}

const MEBIBYTE = 1024 * 1024;
/** Measured: 430 in the most expensive text; the rest is for the previous rules. */
const HEAP_BYTES_PER_PART = 550;
/** About the parts of a file of the largest size with ordinary rules. */
const MAX_FILE_PARTS = 8_000_000;

/** The limits for a maximum heap size, by default that of this process. */
export function ruleFileLimits(heapBytes: number = getHeapStatistics().heap_size_limit): RuleFileLimits {
  const fileParts = Math.min(MAX_FILE_PARTS, Math.floor(heapBytes / HEAP_BYTES_PER_PART));
  return { fileBytes: 16 * MEBIBYTE, allBytes: 32 * MEBIBYTE, fileParts, allParts: 2 * fileParts };
}
