/** Low bits of the tag of a number: a varint follows. */
export const VARINT = 0;
/** Low bits of the tag of a double: 8 bytes follow. */
export const FIXED64 = 1;
/** Low bits of the tag of a text, of bytes and of a message: a length and that many bytes follow. */
export const LENGTH = 2;
/** Low bits of the tags around a group, a deprecated kind of message; none of our fields has them. */
export const START_GROUP = 3;
/** The same at its end. */
export const END_GROUP = 4;
/** Low bits of a tag that 4 bytes follow; none of our fields has it. */
export const FIXED32 = 5;

/** How deep messages may stand in each other, both ways; the bound that peers have as well. */
export const MAX_DEPTH = 100;

/** Bytes that are no message of the expected type, or a value that no message can carry. */
export class WireError extends Error {
  override readonly name = "WireError";
}
