import { Buffer } from "node:buffer";

/**
 * Units joined by line breaks into packets of at most so many bytes. A unit that is longer than that is a
 * packet of its own, because half a line is worth nothing.
 */
export function pushPackets(units: readonly string[], maxBytes: number): string[] {
  const packets: string[] = [];
  let open: string[] = [];
  let openBytes = 0;
  for (const unit of units) {
    const bytes = Buffer.byteLength(unit) + 1;
    if (open.length > 0 && openBytes + bytes > maxBytes + 1) {
      packets.push(open.join("\n"));
      open = [];
      openBytes = 0;
    }
    open.push(unit);
    openBytes += bytes;
  }
  if (open.length > 0) packets.push(open.join("\n"));
  return packets;
}
