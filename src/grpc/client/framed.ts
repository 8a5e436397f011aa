import { MESSAGE_PREFIX_BYTES } from "../native/message_reader.ts";

/** A message with the prefix of gRPC, which says whether it is compressed. */
export function framed(message: Uint8Array, isCompressed = false): Uint8Array {
  const whole = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
  whole[0] = isCompressed ? 1 : 0;
  new DataView(whole.buffer).setUint32(1, message.length);
  whole.set(message, MESSAGE_PREFIX_BYTES);
  return whole;
}
