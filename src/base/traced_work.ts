/** Finished work of another thread, as it is traced. */
export interface TracedWork {
  readonly name: string;
  readonly kind: "internal" | "client";
  /** The UUID of what the work belongs to; all work on it is one trace. */
  readonly id: string;
  /** Wall clock time in milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly tookMs: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The failure; absent where there was none. */
  readonly failure?: string | undefined;
}
