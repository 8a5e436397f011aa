/** What is known of a refused request. */
export interface InvalidRequestOptions extends ErrorOptions {
  /** Path of the field that is wrong. */
  readonly field?: string;
  /** The back end that can never hold what was asked for. */
  readonly backend?: "mc";
}

/** The request can never be answered as it stands; the caller has to change it. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  /** Path of the field that is wrong, such as `descriptors[3].hitsAddend`; absent where it is no single one. */
  readonly field: string | undefined;
  /** The back end that can never hold what was asked for, such as too long a key; names the counter that moves. */
  readonly backend: "mc" | undefined;

  constructor(message: string, options: InvalidRequestOptions = {}) {
    super(message, options);
    this.field = options.field;
    this.backend = options.backend;
  }
}

/** No rules were ever loaded; a later call may find some. */
export class NoConfigurationError extends Error {
  override readonly name = "NoConfigurationError";

  constructor() {
    super("no rate limit configuration loaded");
  }
}

/** How a failure of the counters is told. */
export interface CacheErrorOptions extends ErrorOptions {
  /** By position of the hits: the counts that came all the same. */
  readonly counts?: readonly (number | undefined)[];
}

/** The counters could not be asked, or not all of them; the same call may succeed later. */
export class CacheError extends Error {
  override readonly name = "CacheError";
  /** Which back end failed; names the counter that moves. */
  readonly backend: "kv" | "mc" | "memory";
  /** By position of the hits: counts that came all the same. Empty when none did. */
  readonly counts: readonly (number | undefined)[];

  constructor(backend: "kv" | "mc" | "memory", message: string, options: CacheErrorOptions = {}) {
    super(message, options);
    this.backend = backend;
    this.counts = options.counts ?? [];
  }
}
