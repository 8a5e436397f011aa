/** An invalid request: the caller has to change it. */
export class InvalidRequestError extends Error {
  override readonly name = "InvalidRequestError";
  /** The path of the invalid field, such as `descriptors[3].hitsAddend`. */
  readonly field: string | undefined;
  /** The back end that cannot store it, such as too long a key; selects the error counter. */
  readonly backend: Backend | undefined;

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

/** The counter of failed calls by back end. */
export const BACKEND_ERRORS = { kv: "kvError", mc: "mcError", memory: "kvError" } as const;

/** A kind of counter cache. */
export type Backend = keyof typeof BACKEND_ERRORS;

/** A counter failed; a later call may succeed. */
export class CacheError extends Error {
  override readonly name = "CacheError";
  /** The back end that failed; selects the error counter. */
  readonly backend: Backend;
  /** The cache answers, but too many hits wait for it: no outage, and so not for the failure modes. */
  readonly isOverload: boolean;

  constructor(
    backend: Backend,
    message: string,
    options: ErrorOptions & { readonly isOverload?: boolean } = {},
  ) {
    super(message, options);
    this.backend = backend;
    this.isOverload = options.isOverload ?? false;
  }
}
