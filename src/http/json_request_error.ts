/** A JSON request that cannot be read: which field, and what would be right. */
export class JsonRequestError extends Error {
  override readonly name = "JsonRequestError";
  /** Path of the field, such as `descriptors[0].hitsAddend`; `body` for the whole text. */
  readonly field: string;
  readonly reason: string;
  /** How much of the text was read when it was refused, in UTF-16 code units. */
  readonly offset: number;

  constructor(field: string, reason: string, { offset }: { readonly offset: number }) {
    super(`Cannot read "${field}": ${reason}`);
    this.field = field;
    this.reason = reason;
    this.offset = offset;
  }
}
