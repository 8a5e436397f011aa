import { readRuleFile, type RuleFile } from "./yaml.ts";

/** A file as it was read, and the bytes it was read from. */
interface Reading {
  readonly digest: string;
  readonly file: RuleFile;
}

/** Keeps what was read of each file, so that a file whose bytes are the same is not read again. */
export class RuleFileReadings {
  #before: ReadonlyMap<string, Reading> = new Map();
  #kept = new Map<string, Reading>();

  /** Begins a look at all files; a file that is not asked for in it is forgotten at the next one. */
  begin(): void {
    this.#before = this.#kept;
    this.#kept = new Map();
  }

  /** The file at the path, which holds these bytes. */
  async read(path: string, bytes: Uint8Array<ArrayBuffer>, maxParts: number): Promise<RuleFile> {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
    const before = this.#before.get(path);
    const isSame = before?.digest === digest && before.file.parts <= maxParts;
    const reading = isSame ? before : { digest, file: readText(path, bytes, maxParts) };
    // What was too much to read may be little enough another time, without being changed itself.
    if (reading.file.parts <= maxParts) this.#kept.set(path, reading);
    return reading.file;
  }
}

function readText(path: string, bytes: Uint8Array, maxParts: number): RuleFile {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const problem = "Cannot read the file: it is not UTF-8; save it as UTF-8";
    return {
      source: undefined,
      problems: [{ severity: "error", at: path, path: "", text: problem }],
      parts: 0,
    };
  }
  return readRuleFile(path, text, { maxParts });
}
