import { ConnectionError, readUint32, StreamError } from "./frames.ts";

/** Checks a PRIORITY frame, which then has no effect: the RFC has given priorities up. */
export function checkPriority(streamId: number, payload: Uint8Array): void {
  if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "PRIORITY on stream 0");
  if (payload.length !== 5) throw new StreamError("FRAME_SIZE_ERROR", streamId, "PRIORITY is not 5 octets");
  if ((readUint32(payload, 0) & 0x7fffffff) === streamId) {
    throw new StreamError("PROTOCOL_ERROR", streamId, "a stream depends on itself");
  }
}

/** Checks a GOAWAY frame of a client, which then has no effect: the client ends the connection itself. */
export function checkGoAway(streamId: number, payload: Uint8Array): void {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `GOAWAY on stream ${streamId}`);
  if (payload.length < 8) throw new ConnectionError("FRAME_SIZE_ERROR", "GOAWAY has fewer than 8 octets");
}
