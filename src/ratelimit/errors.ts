import type { Counted } from "./algorithms/taken.ts";

/** An invalid request: the caller has to change it. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  /** The path of the invalid field, such as `descriptors[3].hitsAddend`. */
  readonly field: string | undefined;
  /** The back end that cannot store it, such as too long a key; selects the error counter. */
  readonly backend: "mc" | undefined;

  constructor(
    message: string,
    options: ErrorOptions & Partial<Pick<InvalidRequestError, "field" | "backend">> = {},
  ) {
    super(message, options);
    this.field = options.field;
    this.backend = options.backend;
  }
}

/** No rules are loaded yet; a later call may succeed. */
export class NoConfigurationError extends Error {
  override readonly name = "NoConfigurationError";

  constructor() {
    super("no rate limit configuration loaded");
  }
}

/** Some or all counters failed; a later call may succeed. */
export class CacheError extends Error {
  override readonly name = "CacheError";
  /** The back end that failed; selects the error counter. */
  readonly backend: "kv" | "mc" | "memory";
  /** The counts of the hits that succeeded, by position; of conditional hits, what became of them. */
  readonly counts: readonly (Counted | undefined)[];
  /** The cache answers, but too many hits wait for it: no outage, and so not for the failure modes. */
  readonly isOverload: boolean;

  constructor(
    backend: "kv" | "mc" | "memory",
    message: string,
    options: ErrorOptions & Partial<Pick<CacheError, "counts" | "isOverload">> = {},
  ) {
    super(message, options);
    this.backend = backend;
    this.counts = options.counts ?? [];
    this.isOverload = options.isOverload ?? false;
  }
}
