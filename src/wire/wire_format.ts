/** Wire type of integers, booleans and enums. */
export const VARINT = 0;
/** Wire type of 8 bytes, such as a double. */
export const FIXED64 = 1;
/** Wire type of a length and that many bytes: texts, bytes and messages. */
export const LENGTH = 2;
/** Wire type at the start of a group, which is deprecated and not used by our fields. */
export const START_GROUP = 3;
/** Wire type at the end of a group. */
export const END_GROUP = 4;
/** Wire type of 4 bytes; not used by our fields. */
export const FIXED32 = 5;

/** Maximum nesting of messages in both directions, as in other implementations. */
export const MAX_DEPTH = 100;

/** Bytes that are not a message of the expected type, or a value that cannot be written. */
export class WireError extends Error {
  override readonly name = "WireError";
}
