import { type IpAddress, ipv4Text, parseIpAddress } from "./ip_address.ts";

/** A range of addresses that share their first bits. */
interface Range extends IpAddress {
  /** How many bits they share. */
  readonly prefix: number;
}

/** IPv4 addresses that nobody on the internet has, by range; the first that holds one names it. */
export const BLOCKED_IPV4: Readonly<Record<string, string>> = {
  "0.0.0.0/32": "unspecified",
  "0.0.0.0/8": "of this network",
  "10.0.0.0/8": "private",
  "100.64.0.0/10": "shared by carriers",
  "127.0.0.0/8": "loopback",
  "169.254.0.0/16": "link-local",
  "172.16.0.0/12": "private",
  "192.0.0.0/24": "for protocols",
  "192.0.2.0/24": "for documentation",
  "192.31.196.0/24": "for AS112 name servers",
  "192.52.193.0/24": "for multicast tunnels",
  "192.88.99.0/24": "for 6to4 relays",
  "192.168.0.0/16": "private",
  "192.175.48.0/24": "for AS112 name servers",
  "198.18.0.0/15": "for benchmarks",
  "198.51.100.0/24": "for documentation",
  "203.0.113.0/24": "for documentation",
  "224.0.0.0/4": "multicast",
  "255.255.255.255/32": "broadcast",
  "240.0.0.0/4": "reserved",
};

/** The same for IPv6. What is neither here, nor carries IPv4, nor is in 2000::/3 is reserved. */
export const BLOCKED_IPV6: Readonly<Record<string, string>> = {
  "::/128": "unspecified",
  "::1/128": "loopback",
  "::/96": "IPv4-compatible",
  "64:ff9b:1::/48": "for local NAT64",
  "100::/64": "for discarding",
  "100:0:0:1::/64": "a dummy",
  "2001:2::/48": "for benchmarks",
  "2001:10::/28": "ORCHID",
  "2001:20::/28": "ORCHID",
  "2001:db8::/32": "for documentation",
  "2001::/23": "for protocols",
  "2620:4f:8000::/48": "for AS112 name servers",
  "3fff::/20": "for documentation",
  "5f00::/16": "for segment routing",
  "fc00::/7": "unique local",
  "fe80::/10": "link-local",
  "fec0::/10": "site-local",
  "ff00::/8": "multicast",
};

/** Forms of IPv6 that carry IPv4 addresses: they go where those do. */
const CARRIERS: readonly {
  readonly name: string;
  readonly range: Range;
  readonly inside: (value: bigint) => readonly bigint[];
}[] = [
  { name: "IPv4-mapped", range: rangeOf("::ffff:0:0/96"), inside: (value) => [low32(value)] },
  { name: "IPv4-translated", range: rangeOf("::ffff:0:0:0/96"), inside: (value) => [low32(value)] },
  { name: "NAT64", range: rangeOf("64:ff9b::/96"), inside: (value) => [low32(value)] },
  { name: "6to4", range: rangeOf("2002::/16"), inside: (value) => [low32(value >> 80n)] },
  // The server, and the client with its bits turned over.
  {
    name: "Teredo",
    range: rangeOf("2001::/32"),
    inside: (value) => [low32(value >> 64n), low32(value) ^ 0xffff_ffffn],
  },
];

const GLOBAL_UNICAST = rangeOf("2000::/3");
const IPV4_MAPPED = rangeOf("::ffff:0:0/96");
const RANGES_IPV4 = rangesOf(BLOCKED_IPV4);
const RANGES_IPV6 = rangesOf(BLOCKED_IPV6);

/** Ranges of addresses that are open although they are blocked for others. */
export class Cidrs {
  readonly #ranges: readonly Range[];

  /** Takes ranges such as `10.0.0.0/8`; throws a `RangeError` that names one which is none. */
  constructor(ranges: readonly string[] = []) {
    this.#ranges = ranges.map((text) => unmappedRange(rangeOf(text)));
  }

  /** Whether an address is in one of them; the IPv4-mapped form of an address is the same address. */
  contains(address: string): boolean {
    const parsed = parseIpAddress(address);
    return parsed !== undefined && this.#holds(unmapped(parsed));
  }

  /** As `contains`, of an IPv4 address as a number. */
  containsIpv4(value: bigint): boolean {
    return this.#holds({ bits: 32, value });
  }

  #holds(address: IpAddress): boolean {
    return this.#ranges.some((range) => isIn(address, range));
  }
}

const NONE_OPEN = new Cidrs();

/**
 * Why nothing may be sent to an address, in words that follow "the address is", with the range; nothing when it may.
 * A text that is no address is blocked as well.
 */
export function blockedReason(address: string, allow: Cidrs = NONE_OPEN): string | undefined {
  const parsed = parseIpAddress(address);
  if (parsed === undefined) return "none that can be read";
  if (allow.contains(address)) return undefined;
  return parsed.bits === 32 ? blockedIpv4(parsed.value, allow) : blockedIpv6(parsed, allow);
}

function blockedIpv4(value: bigint, allow: Cidrs): string | undefined {
  if (allow.containsIpv4(value)) return undefined;
  return reasonIn({ bits: 32, value }, RANGES_IPV4);
}

function blockedIpv6(address: IpAddress, allow: Cidrs): string | undefined {
  const isatap = isIsatap(address) ? blockedIpv4(low32(address.value), allow) : undefined;
  if (isatap !== undefined) return `ISATAP for ${ipv4Text(low32(address.value))}, which is ${isatap}`;
  for (const { name, range, inside } of CARRIERS) {
    if (!isIn(address, range)) continue;
    for (const value of inside(address.value)) {
      const reason = blockedIpv4(value, allow);
      if (reason !== undefined) return `${name} for ${ipv4Text(value)}, which is ${reason}`;
    }
    return undefined;
  }
  const reason = reasonIn(address, RANGES_IPV6);
  if (reason !== undefined) return reason;
  return isIn(address, GLOBAL_UNICAST) ? undefined : "reserved (outside 2000::/3)";
}

/** Whether it carries an IPv4 address behind a prefix of any kind (RFC 5214); the bit tells of a unique address. */
function isIsatap({ value }: IpAddress): boolean {
  return (low32(value >> 32n) & ~0x0200_0000n) === 0x5efen;
}

function reasonIn(
  address: IpAddress,
  ranges: readonly { readonly text: string; readonly name: string; readonly range: Range }[],
): string | undefined {
  const found = ranges.find(({ range }) => isIn(address, range));
  return found === undefined ? undefined : `${found.name} (${found.text})`;
}

function rangesOf(
  table: Readonly<Record<string, string>>,
): readonly { readonly text: string; readonly name: string; readonly range: Range }[] {
  return Object.entries(table).map(([text, name]) => ({ text, name, range: rangeOf(text) }));
}

function rangeOf(text: string): Range {
  const [, addressText = "", prefixText = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const address = parseIpAddress(addressText);
  const prefix = Number(prefixText);
  if (address === undefined || prefixText === "" || prefix > address.bits) {
    throw new RangeError(`Cannot use the address range "${text}": one such as 10.0.0.0/8 would be right`);
  }
  return { ...address, prefix };
}

function isIn(address: IpAddress, range: Range): boolean {
  if (address.bits !== range.bits) return false;
  const shift = BigInt(range.bits - range.prefix);
  return address.value >> shift === range.value >> shift;
}

/** The IPv4 address that an IPv4-mapped one is; any other as it is. */
function unmapped(address: IpAddress): IpAddress {
  return isIn(address, IPV4_MAPPED) ? { bits: 32, value: low32(address.value) } : address;
}

function unmappedRange(range: Range): Range {
  if (range.prefix < IPV4_MAPPED.prefix || !isIn(range, IPV4_MAPPED)) return range;
  return { bits: 32, value: low32(range.value), prefix: range.prefix - IPV4_MAPPED.prefix };
}

function low32(value: bigint): bigint {
  return value & 0xffff_ffffn;
}
