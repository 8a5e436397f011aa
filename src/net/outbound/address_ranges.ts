import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [first: Address, prefix: number];

/** IPv4 addresses that no host on the internet has, by range; the first that holds one names it. */
export const BLOCKED_IPV4: Readonly<Record<string, string>> = {
  "0.0.0.0/32": "unspecified",
  "0.0.0.0/8": "of this network",
  "10.0.0.0/8": "private",
  "100.64.0.0/10": "shared by carriers",
  "127.0.0.0/8": "loopback",
  "168.63.129.16/32": "the platform service of Azure",
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
  readonly inside: (bytes: readonly number[]) => readonly ipaddr.IPv4[];
}[] = [
  { name: "IPv4-mapped", range: rangeOf("::ffff:0:0/96"), inside: (bytes) => [ipv4At(bytes, 12)] },
  { name: "IPv4-translated", range: rangeOf("::ffff:0:0:0/96"), inside: (bytes) => [ipv4At(bytes, 12)] },
  { name: "NAT64", range: rangeOf("64:ff9b::/96"), inside: (bytes) => [ipv4At(bytes, 12)] },
  { name: "6to4", range: rangeOf("2002::/16"), inside: (bytes) => [ipv4At(bytes, 2)] },
  // The server, and the client with its bits inverted.
  {
    name: "Teredo",
    range: rangeOf("2001::/32"),
    inside: (bytes) => [ipv4At(bytes, 4), ipv4At(bytes.map((byte) => byte ^ 0xff), 12)],
  },
];

const GLOBAL_UNICAST = rangeOf("2000::/3");
const MAPPED_PREFIX = 96;
const RANGES_IPV4 = rangesOf(BLOCKED_IPV4);
const RANGES_IPV6 = rangesOf(BLOCKED_IPV6);

/** Ranges of addresses that are open although they are blocked for others. */
export class Cidrs {
  readonly #ranges: readonly Range[];

  /** Takes ranges such as `10.0.0.0/8`; throws a `RangeError` that names an invalid one. */
  constructor(ranges: readonly string[] = []) {
    this.#ranges = ranges.map((text) => unmappedRange(rangeOf(text)));
  }

  /** Returns whether an address is in one of them; the IPv4-mapped form of an address is the same address. */
  contains(address: string): boolean {
    const parsed = parseAddress(address);
    return parsed !== undefined && this.holds(unmapped(parsed));
  }

  /** As `contains`, of a parsed address. */
  holds(address: Address): boolean {
    return this.#ranges.some((range) => isIn(address, range));
  }
}

const NONE_OPEN = new Cidrs();

/**
 * Why nothing may be sent to an address, in words that follow "the address is", with the range; nothing when it may.
 * A text that is no address is blocked as well.
 */
export function blockedReason(address: string, allow: Cidrs = NONE_OPEN): string | undefined {
  const parsed = parseAddress(address);
  if (parsed === undefined) return "none that can be read";
  if (allow.holds(unmapped(parsed))) return undefined;
  return parsed instanceof ipaddr.IPv4 ? reasonIn(parsed, RANGES_IPV4) : blockedIpv6(parsed, allow);
}

function blockedIpv6(address: ipaddr.IPv6, allow: Cidrs): string | undefined {
  const bytes = address.toByteArray();
  const blockedInside = (form: string, inside: ipaddr.IPv4) => {
    const reason = allow.holds(inside) ? undefined : reasonIn(inside, RANGES_IPV4);
    return reason === undefined ? undefined : `${form} for ${inside.toString()}, which is ${reason}`;
  };
  const isatap = isIsatap(bytes) ? blockedInside("ISATAP", ipv4At(bytes, 12)) : undefined;
  if (isatap !== undefined) return isatap;
  const carrier = CARRIERS.find(({ range }) => isIn(address, range));
  if (carrier !== undefined) {
    const reasons = carrier.inside(bytes).map((inside) => blockedInside(carrier.name, inside));
    return reasons.find((reason) => reason !== undefined);
  }
  return reasonIn(address, RANGES_IPV6) ??
    (isIn(address, GLOBAL_UNICAST) ? undefined : "reserved (outside 2000::/3)");
}

/** Returns whether it carries an IPv4 address behind a prefix of any kind (RFC 5214); the bit marks a unique address. */
function isIsatap(bytes: readonly number[]): boolean {
  const [first = 0, ...rest] = bytes.slice(8, 12);
  return (first & ~0x02) === 0 && rest.join() === "0,94,254";
}

/** The first range that holds an address, as a reason. */
function reasonIn(address: Address, ranges: ReturnType<typeof rangesOf>): string | undefined {
  return ipaddr.subnetMatch(address, ranges, "") || undefined;
}

function rangesOf(table: Readonly<Record<string, string>>): Record<string, [Address, number][]> {
  const ranges = Object.entries(table).map(([text, name]) => {
    const [first, prefix] = rangeOf(text);
    return [`${name} (${text})`, [[first, prefix] satisfies [Address, number]]];
  });
  return Object.fromEntries(ranges);
}

/** The usual form only: the package would also take `127.1` and octal numbers, and zones name an interface. */
function parseAddress(text: string): Address | undefined {
  return isIP(text) === 0 || text.includes("%") ? undefined : ipaddr.parse(text);
}

function rangeOf(text: string): Range {
  const [, addressText = "", prefixText = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const address = parseAddress(addressText);
  const prefix = Number(prefixText);
  if (address === undefined || prefix > 8 * address.toByteArray().length) {
    throw new RangeError(`Invalid address range "${text}": expected one such as 10.0.0.0/8`);
  }
  return [address, prefix];
}

function isIn(address: Address, [first, prefix]: Range): boolean {
  return address.kind() === first.kind() && address.match(first, prefix);
}

/** The IPv4 address that an IPv4-mapped one is; any other as it is. */
function unmapped(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

function unmappedRange([first, prefix]: Range): Range {
  const inside = unmapped(first);
  return inside === first || prefix < MAPPED_PREFIX ? [first, prefix] : [inside, prefix - MAPPED_PREFIX];
}

function ipv4At(bytes: readonly number[], index: number): ipaddr.IPv4 {
  return new ipaddr.IPv4(bytes.slice(index, index + 4));
}
