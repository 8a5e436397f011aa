/** An IP address as a number. IPv4-mapped IPv6 addresses stay IPv6. */
export interface IpAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const GROUPS = 8;

/** Reads an address in its usual form; nothing for any other, zone identifiers and odd forms of IPv4 included. */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (!text.includes(":")) {
    const value = ipv4Value(text);
    return value === undefined ? undefined : { bits: 32, value };
  }
  const value = ipv6Value(text);
  return value === undefined ? undefined : { bits: 128, value };
}

/** The number of an IPv4 address as a text. */
export function ipv4Text(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join(".");
}

function ipv4Value(text: string): bigint | undefined {
  const octets = text.split(".");
  if (octets.length !== 4) return undefined;
  let value = 0n;
  for (const octet of octets) {
    if (!OCTET.test(octet) || Number(octet) > 255) return undefined;
    value = (value << 8n) | BigInt(octet);
  }
  return value;
}

function ipv6Value(text: string): bigint | undefined {
  const halves = text.split("::");
  const [head, tail] = halves.map(groupsOf);
  if (halves.length > 2 || head === undefined) return undefined;
  if (halves.length === 1) return head.length === GROUPS ? valueOf(head) : undefined;
  // Nothing is left to stand for between the two.
  if (tail === undefined || head.length + tail.length >= GROUPS) return undefined;
  // The IPv4 form may stand only at the very end.
  if (halves[0]?.includes(".") === true) return undefined;
  return valueOf([...head, ...new Array<number>(GROUPS - head.length - tail.length).fill(0), ...tail]);
}

/** The numbers between the colons; an IPv4 address at the end is two of them. */
function groupsOf(text: string): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (index === parts.length - 1 && part.includes(".")) {
      const inside = ipv4Value(part);
      if (inside === undefined) return undefined;
      groups.push(Number(inside >> 16n), Number(inside & 0xffffn));
    } else if (GROUP.test(part)) groups.push(parseInt(part, 16));
    else return undefined;
  }
  return groups;
}

function valueOf(groups: readonly number[]): bigint {
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}
