/** The request can never be answered as it stands; the caller has to change it. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  /** Path of the field that is wrong, such as `descriptors[3].hitsAddend`; absent where it is no single one. */
  readonly field: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly field?: string } = {}) {
    super(message, options);
    this.field = options.field;
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
