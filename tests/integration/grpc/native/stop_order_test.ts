import { assertEquals } from "#assert";
import { ConnectionStream } from "../../../../src/net/connection_stream.ts";
import { FRAME, FRAME_HEADER_BYTES } from "../../../../src/grpc/native/frames.ts";
import { EngineBed } from "../../../harness/engine_bed.ts";

/**
 * True if a port of 127.0.0.1 listens, as the kernel reports at this moment. A program of another test may listen on
 * the same port of another address.
 */
function listens(port: number): boolean {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lines = Deno.readTextFileSync("/proc/net/tcp").split("\n");
  return lines.some((line) => line.includes(`${local}00000000:0000 0A`));
}

/** True if one of the frames is a GOAWAY. */
function hasGoAway(frames: Uint8Array): boolean {
  const view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength);
  for (let at = 0; at + FRAME_HEADER_BYTES <= frames.length;) {
    if (view.getUint8(at + 3) === FRAME.GOAWAY) return true;
    at += FRAME_HEADER_BYTES + (view.getUint32(at) >>> 8);
  }
  return false;
}

Deno.test({
  name: "stop: peers are asked to go away only when the port no longer accepts",
  // Other systems do not tell which ports listen.
  ignore: Deno.build.os !== "linux",
  async fn() {
    const bed = await EngineBed.open();
    const port = Number(bed.engine.address.split(":").at(-1));
    assertEquals(listens(port), true);
    const states: boolean[] = [];
    const write = ConnectionStream.prototype._write;
    ConnectionStream.prototype._write = function (this: ConnectionStream, chunk, encoding, done) {
      if (hasGoAway(chunk)) states.push(listens(port));
      write.call(this, chunk, encoding, done);
    };
    try {
      const closed = bed.engine.close(60_000);
      await bed.neighbour.end();
      await closed;
    } finally {
      ConnectionStream.prototype._write = write;
      await bed.neighbour[Symbol.asyncDispose]();
    }
    assertEquals(states.length > 0 && states.every((state) => !state), true, JSON.stringify(states));
    assertEquals([bed.takeLog(), bed.clock.waiting], [[], 0]);
  },
});
