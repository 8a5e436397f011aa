import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { checkSecretFile, secretOf, secretProblem } from "../base/secret_text.ts";
import { fileState, WatchedFiles } from "../threads/watched_files.ts";

/** A file with the value of a setting. */
export interface SecretFile {
  /** The setting, such as `KV_AUTH`. */
  readonly name: string;
  readonly path: string;
  /** The value that is in use. */
  readonly value: string;
}

interface WatchedSecretsOptions {
  readonly files: readonly SecretFile[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with all values, by their settings, after one of them changed; one that it throws for is not used. */
  readonly onChange: (values: ReadonlyMap<string, string>) => void;
}

/** Short, because connections that were lost wait for the new value. */
const LOOK_MS = 250;
const SETTLE_MS = 100;

/**
 * Reads secret files again when they change, without a bell: a store in a watched folder loses its locks. A file that
 * cannot be used is logged once for each problem, without its content, and the previous value stays.
 */
export class WatchedSecrets {
  /** The number of changes that were applied, and of those that were rejected. */
  readonly metrics = { reloaded: 0, rejected: 0 };
  readonly #options: WatchedSecretsOptions;
  readonly #watched: WatchedFiles;
  #values: ReadonlyMap<string, string>;
  /** The content of the files at the last look, by their settings. */
  #readings: ReadonlyMap<string, string | Error> = new Map();
  /** The problems that were logged. */
  readonly #problems = new Map<string, string>();

  constructor(options: WatchedSecretsOptions) {
    const { files, clock } = this.#options = options;
    this.#values = new Map(files.map(({ name, value }) => [name, value]));
    this.#watched = new WatchedFiles({
      look: () => this.#look(),
      onChange: () => Promise.resolve(this.#conclude()),
      clock,
      lookMs: LOOK_MS,
      settleMs: SETTLE_MS,
    });
  }

  /** Begins to look; settles when the files were read for the first time. */
  start(): Promise<void> {
    return this.#watched.start();
  }

  /** Reads the files now: a server refused what they had. */
  readNow(): void {
    this.#watched.readNow();
  }

  async close(): Promise<void> {
    await this.#watched.close();
  }

  /** Includes the content, because a change may keep the size and the time of a file. */
  async #look(): Promise<string> {
    const readings = new Map<string, string | Error>();
    const seen: string[] = [];
    for (const { name, path } of this.#options.files) {
      const reading = await readSecret(path);
      readings.set(name, reading);
      const content = reading instanceof Error
        ? reading.message
        : createHash("sha256").update(reading).digest("hex");
      seen.push(await fileState(path), content);
    }
    this.#readings = readings;
    return seen.join("\n");
  }

  #conclude(): false {
    for (const [name, reading] of this.#readings) {
      if (reading instanceof Error) this.#reject(name, reading.message);
      else if (reading !== this.#values.get(name)) this.#apply(name, reading);
      else if (this.#problems.delete(name)) this.#options.logger.warning(`${name}_FILE can be used again`);
    }
    return false;
  }

  #apply(name: string, value: string): void {
    const { logger, onChange } = this.#options;
    const values = new Map(this.#values).set(name, value);
    try {
      onChange(values);
    } catch (error) {
      return this.#reject(name, errorText(error));
    }
    this.#values = values;
    this.#problems.delete(name);
    this.metrics.reloaded++;
    logger.info(`Credentials of ${name}_FILE reloaded`, {}, "warning");
  }

  #reject(name: string, problem: string): void {
    if (this.#problems.get(name) === problem) return;
    this.#problems.set(name, problem);
    this.metrics.rejected++;
    const { path } = this.#options.files.find((file) => file.name === name) ?? {};
    const fields = { file: path, reason: problem };
    this.#options.logger.error(`Reload of ${name}_FILE rejected; keeping the previous credentials`, fields);
  }
}

/** The error for an address of which more than the user and the password has changed. */
export function otherAddress(): Error {
  return new Error("expected the address in use with other credentials; restart Weir to use another address");
}

/** The secret of a file, or an error without its content. */
async function readSecret(path: string): Promise<string | Error> {
  try {
    checkSecretFile(await Deno.stat(path));
    return secretOf(await Deno.readTextFile(path));
  } catch (error) {
    return new Error(secretProblem(error), { cause: error });
  }
}
