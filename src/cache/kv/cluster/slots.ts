/** How many parts the keys of a cluster fall into. */
export const SLOT_COUNT = 16_384;

const CRC_TABLE = crcTable();
const encoder = new TextEncoder();

/** Where one node of a cluster listens. */
export interface KvEndpoint {
  readonly host: string;
  readonly port: number;
}

/** Slots that lie side by side on one primary; both ends belong to it. */
export interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly endpoint: KvEndpoint;
}

/** Where a node sends a command instead of running it; an ASK counts for this one command only. */
export interface SlotRedirect {
  readonly kind: "MOVED" | "ASK";
  readonly slot: number;
  readonly endpoint: KvEndpoint;
}

/**
 * The slot of a key: CRC-16/XMODEM over its UTF-8 octets. Where the key has something between its
 * first `{` and the next `}`, only that counts.
 */
export function slotOf(key: string): number {
  let from = 0;
  let end = key.length;
  const open = key.indexOf("{");
  if (open >= 0) {
    const close = key.indexOf("}", open + 1);
    if (close > open + 1) {
      from = open + 1;
      end = close;
    }
  }
  let crc = 0;
  for (let index = from; index < end; index++) {
    const code = key.charCodeAt(index);
    if (code > 127) return slotOfOctets(encoder.encode(key.slice(from, end)));
    crc = crcStep(crc, code);
  }
  return crc % SLOT_COUNT;
}

/**
 * Reads the answer to CLUSTER SLOTS that `answering` gave. What cannot be read is left out, so that an
 * answer of another form gives nothing.
 */
export function parseSlotRanges(reply: unknown, answering: KvEndpoint): SlotRange[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((range: unknown) => {
    if (!Array.isArray(range)) return [];
    const [from, to, primary] = range as readonly unknown[];
    const endpoint = parseNode(primary, answering);
    if (!isSlot(from) || !isSlot(to) || from > to || endpoint === undefined) return [];
    return [{ from, to, endpoint }];
  });
}

/** Reads an error such as `MOVED 3999 127.0.0.1:6381` that `answering` gave; nothing when it is another one. */
export function parseRedirect(text: string, answering: KvEndpoint): SlotRedirect | undefined {
  const parts = /^(MOVED|ASK) (\d{1,5}) (\S*):(\d{1,5})$/.exec(text.trim());
  if (parts === null) return undefined;
  const slot = Number(parts[2]);
  const port = Number(parts[4]);
  if (!isSlot(slot) || !isPort(port)) return undefined;
  const host = (parts[3] ?? "").replace(/^\[(.*)\]$/, "$1");
  const kind = parts[1] === "ASK" ? "ASK" : "MOVED";
  return { kind, slot, endpoint: { host: isUnknown(host) ? answering.host : host, port } };
}

function parseNode(node: unknown, answering: KvEndpoint): KvEndpoint | undefined {
  if (!Array.isArray(node)) return undefined;
  const [host, port, , more] = node as readonly unknown[];
  if (!isPort(port)) return undefined;
  if (typeof host === "string" && !isUnknown(host)) return { host, port };
  // A node without an address that may be told is reached where the answer came from.
  if (host !== null && typeof host !== "string") return undefined;
  return { host: (host === "?" ? ipOf(more) : undefined) ?? answering.host, port };
}

/** A node whose host name is not known tells its address beside it. */
function ipOf(more: unknown): string | undefined {
  if (!Array.isArray(more)) return undefined;
  const at = more.indexOf("ip");
  const ip: unknown = at < 0 ? undefined : more[at + 1];
  return typeof ip === "string" && !isUnknown(ip) ? ip : undefined;
}

function isUnknown(host: string): boolean {
  return host === "" || host === "?";
}

function isSlot(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) < SLOT_COUNT;
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 65_536;
}

function slotOfOctets(octets: Uint8Array): number {
  let crc = 0;
  for (const octet of octets) crc = crcStep(crc, octet);
  return crc % SLOT_COUNT;
}

function crcStep(crc: number, octet: number): number {
  return ((crc << 8) ^ (CRC_TABLE[(crc >>> 8) ^ octet] ?? 0)) & 0xffff;
}

function crcTable(): Uint16Array {
  const polynomial = 0x1021;
  return Uint16Array.from({ length: 256 }, (_, octet) => {
    let crc = octet << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ polynomial;
    return crc;
  });
}
