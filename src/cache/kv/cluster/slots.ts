import type { HostAndPort } from "../../../base/host_port.ts";

/** The number of slots of a cluster. */
export const SLOT_COUNT = 16_384;

const CRC_TABLE = crcTable();
const encoder = new TextEncoder();

/** Adjacent slots of one primary. */
export interface SlotRange {
  readonly from: number;
  /** The last slot. */
  readonly to: number;
  readonly endpoint: HostAndPort;
}

/** The redirection of a command to another node; an ASK is for this one command only. */
export interface SlotRedirect {
  readonly kind: "MOVED" | "ASK";
  readonly slot: number;
  readonly endpoint: HostAndPort;
}

/** The slot of a key: CRC-16/XMODEM of its UTF-8 bytes, or of those between its first `{` and the next `}`. */
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
    if (code > 127) return encoder.encode(key.slice(from, end)).reduce(crcStep, 0) % SLOT_COUNT;
    crc = crcStep(crc, code);
  }
  return crc % SLOT_COUNT;
}

/** The ranges in the reply of `answering` to CLUSTER SLOTS; whatever has another form is left out. */
export function parseSlotRanges(reply: unknown, answering: HostAndPort): SlotRange[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((range: unknown) => {
    if (!Array.isArray(range)) return [];
    const [from, to, primary] = range as readonly unknown[];
    const endpoint = parseNode(primary, answering);
    if (!isSlot(from) || !isSlot(to) || from > to || endpoint === undefined) return [];
    return [{ from, to, endpoint }];
  });
}

/** The redirect in an error of `answering` such as `MOVED 3999 127.0.0.1:6381`; absent for other errors. */
export function parseRedirect(text: string, answering: HostAndPort): SlotRedirect | undefined {
  const parts = /^(MOVED|ASK) (\d{1,5}) (\S*):(\d{1,5})$/.exec(text.trim());
  if (parts === null) return undefined;
  const slot = Number(parts[2]);
  const port = Number(parts[4]);
  if (!isSlot(slot) || !isPort(port)) return undefined;
  const host = (parts[3] ?? "").replace(/^\[(.*)\]$/, "$1");
  const kind = parts[1] === "ASK" ? "ASK" : "MOVED";
  return { kind, slot, endpoint: { host: isUnknown(host) ? answering.host : host, port } };
}

function parseNode(node: unknown, answering: HostAndPort): HostAndPort | undefined {
  if (!Array.isArray(node)) return undefined;
  const [host, port, , more] = node as readonly unknown[];
  if (!isPort(port)) return undefined;
  if (typeof host === "string" && !isUnknown(host)) return { host, port };
  // A node without a known address has that of the answering node.
  if (host !== null && typeof host !== "string") return undefined;
  return { host: (host === "?" ? ipOf(more) : undefined) ?? answering.host, port };
}

/** The address of a node whose host name is unknown. */
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

function crcStep(crc: number, byte: number): number {
  return ((crc << 8) ^ (CRC_TABLE[(crc >>> 8) ^ byte] ?? 0)) & 0xffff;
}

function crcTable(): Uint16Array {
  const polynomial = 0x1021;
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let crc = byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ polynomial;
    return crc;
  });
}
