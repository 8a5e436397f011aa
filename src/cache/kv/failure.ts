/** Hits that a node of the key-value cache did not answer, or not all of them. */
export class KvFailure extends Error {
  override readonly name = "KvFailure";
  /** By position of the hits: the counts that came. */
  readonly counts: readonly (number | undefined)[];
  /** By position of the hits: what went wrong with those that have no count, such as the node's own words. */
  readonly states: readonly (string | undefined)[];

  constructor(
    message: string,
    parts: { counts: readonly (number | undefined)[]; states: readonly (string | undefined)[] },
  ) {
    super(message);
    this.counts = parts.counts;
    this.states = parts.states;
  }
}
