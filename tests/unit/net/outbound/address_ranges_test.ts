import { assertEquals, assertThrows } from "#assert";
import { BlockList } from "node:net";
import {
  BLOCKED_IPV4,
  BLOCKED_IPV6,
  blockedReason,
  Cidrs,
} from "../../../../src/net/outbound/address_ranges.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

/** Texts that are addresses, and their numbers. */
const ADDRESSES: Readonly<Record<string, bigint>> = {
  "0.0.0.0": 0n,
  "127.0.0.1": 0x7f00_0001n,
  "255.255.255.255": 0xffff_ffffn,
  "::": 0n,
  "::1": 1n,
  "1::": 1n << 112n,
  "::ffff:1.2.3.4": 0xffff_0102_0304n,
  "1:2:3:4:5:6:7:8": 0x0001_0002_0003_0004_0005_0006_0007_0008n,
  "1:2:3:4:5:6:1.2.3.4": 0x0001_0002_0003_0004_0005_0006_0102_0304n,
  "2001:DB8::a": (0x2001_0db8n << 96n) | 10n,
  "1:2:3:4:5:6:7::": 0x0001_0002_0003_0004_0005_0006_0007_0000n,
};

/** Texts that are none: each reader would take another address for them, or they name an interface. */
const NO_ADDRESSES = [
  ...[
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.0.0.01",
    "1.2.3.4.",
    "256.0.0.1",
  ],
  ...["1.2.3", "1.2.3.4.5", " 1.2.3.4", "1.2.3.4/8", "1..2.3", "-1.2.3.4", "1.2.3.1e1"],
  ...[
    "[::1]",
    "fe80::1%eth0",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    "g::",
    "::1 ",
  ],
  ...[
    "1:2:3:4:5:6:7:1.2.3.4",
    "::1.2.3",
    "1.2.3.4::",
    "::1.2.3.4:5",
    "1:2:3:4:5:6:7:8::",
    ":1::",
    "::01.2.3.4",
  ],
];

/** An address in its longest form. */
function longForm(value: bigint, isIpv6: boolean): string {
  const [parts, bits] = isIpv6 ? [8, 16n] : [4, 8n];
  const texts = Array.from({ length: parts }, (_, index) => {
    const part = (value >> (bits * BigInt(parts - 1 - index))) & ((1n << bits) - 1n);
    return part.toString(isIpv6 ? 16 : 10);
  });
  return texts.join(isIpv6 ? ":" : ".");
}

Deno.test("addresses are read exactly, and nothing else is", () => {
  for (const [text, value] of Object.entries(ADDRESSES)) {
    const isIpv6 = text.includes(":");
    const only = new Cidrs([`${text}/${isIpv6 ? 128 : 32}`]);
    const near = [value - 1n, value, value + 1n].map((one) => only.contains(longForm(one, isIpv6)));
    assertEquals([only.contains(text), near], [true, [false, true, false]], text);
  }
  const all = new Cidrs(["0.0.0.0/0", "::/0"]);
  for (const text of NO_ADDRESSES) assertEquals(all.contains(text), false, text);
});

/** First and last address of each blocked range, and what its reason begins with. */
const BLOCKED: readonly (readonly [first: string, last: string, reason: string])[] = [
  ["0.0.0.0", "0.0.0.0", "unspecified"],
  ["0.0.0.1", "0.255.255.255", "of this network"],
  ["10.0.0.0", "10.255.255.255", "private"],
  ["100.64.0.0", "100.127.255.255", "shared by carriers"],
  ["127.0.0.0", "127.255.255.255", "loopback"],
  ["169.254.0.0", "169.254.255.255", "link-local"],
  ["168.63.129.16", "168.63.129.16", "the platform service of Azure"],
  ["172.16.0.0", "172.31.255.255", "private"],
  ["192.0.0.0", "192.0.0.255", "for protocols"],
  ["192.0.2.0", "192.0.2.255", "for documentation"],
  ["192.31.196.0", "192.31.196.255", "for AS112"],
  ["192.52.193.0", "192.52.193.255", "for multicast tunnels"],
  ["192.88.99.0", "192.88.99.255", "for 6to4 relays"],
  ["192.168.0.0", "192.168.255.255", "private"],
  ["192.175.48.0", "192.175.48.255", "for AS112"],
  ["198.18.0.0", "198.19.255.255", "for benchmarks"],
  ["198.51.100.0", "198.51.100.255", "for documentation"],
  ["203.0.113.0", "203.0.113.255", "for documentation"],
  ["224.0.0.0", "239.255.255.255", "multicast"],
  ["240.0.0.0", "255.255.255.254", "reserved"],
  ["255.255.255.255", "255.255.255.255", "broadcast"],
  ["::", "::", "unspecified"],
  ["::1", "::1", "loopback"],
  ["::2", "::ffff:ffff", "IPv4-compatible"],
  ["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "for local NAT64"],
  ["100::", "100::ffff:ffff:ffff:ffff", "for discarding"],
  ["100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff", "a dummy"],
  ["2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", "for protocols"],
  ["2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "for benchmarks"],
  ["2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHID"],
  ["2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff", "ORCHID"],
  ["2001:100::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "for protocols"],
  ["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "for documentation"],
  ["2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "for AS112"],
  ["3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "for documentation"],
  ["4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"],
  ["5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "for segment routing"],
  ["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local"],
  ["fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local"],
  ["fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "site-local"],
  ["ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"],
  ["::ffff:127.0.0.1", "::ffff:7f00:1", "IPv4-mapped for 127.0.0.1, which is loopback"],
  ["::ffff:0:10.0.0.1", "::ffff:0:a00:1", "IPv4-translated for 10.0.0.1, which is private"],
  ["64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", "NAT64 for 169.254.169.254, which is link-local"],
  ["2002:a00:1::", "2002:a00:1:ffff:ffff:ffff:ffff:ffff", "6to4 for 10.0.0.1, which is private"],
  ["2001:0:7f00:1::", "2001:0:7f00:1:0:0:f7f7:f7f7", "Teredo for 127.0.0.1, which is loopback"],
  ["2600::5efe:a00:1", "2600::200:5efe:a00:1", "ISATAP for 10.0.0.1, which is private"],
  ["2001:0:808:808::80ff:fffe", "2001:0:808:808::80ff:fffe", "Teredo for 127.0.0.1, which is loopback"],
  ["64:ff9b::168.63.129.16", "64:ff9b::a83f:8110", "NAT64 for 168.63.129.16, which is the platform"],
  [
    "2002:a83f:8110::",
    "2002:a83f:8110:ffff:ffff:ffff:ffff:ffff",
    "6to4 for 168.63.129.16, which is the platform",
  ],
];

/** Addresses at which cloud providers serve metadata and credentials to their machines. */
const METADATA = {
  "AWS, Azure, Google Cloud and others": "169.254.169.254",
  "AWS, containers": "169.254.170.2",
  "AWS, IPv6": "fd00:ec2::254",
  "AWS, containers, IPv6": "fd00:ec2::23",
  "Azure, platform": "168.63.129.16",
  "Google Cloud, IPv6": "fd20:ce::254",
  "Alibaba Cloud": "100.100.100.200",
  "Oracle Cloud": "192.0.0.192",
  "Oracle Cloud, IPv6": "fd00:c1::a9fe:a9fe",
  "Scaleway": "169.254.42.42",
  "Scaleway, IPv6": "fd00:42::42",
  "Tencent Cloud": "169.254.0.23",
  "Akamai, IPv6": "fd00:a9fe:a9fe::1",
};

for (const [provider, address] of Object.entries(METADATA)) {
  Deno.test(`metadata address is blocked in every form: ${provider}`, () => {
    const parts = address.includes(":") ? [] : address.split(".").map(Number);
    const hex = parts.map((part) => part.toString(16).padStart(2, "0")).join("").replace(/^..../, "$&:");
    const forms = hex === "" ? [] : [`::ffff:${hex}`, `::ffff:0:${hex}`, `64:ff9b::${hex}`, `2002:${hex}::1`];
    assertEquals([address, ...forms].filter((form) => blockedReason(form) === undefined), []);
  });
}

/** Next to the blocked ranges, or carrying such an address. */
const OPEN = [
  ...["1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"],
  ...[
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
  ],
  ...["192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"],
  ...["198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "192.88.98.255"],
  ...["2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2606:4700::1", "2620:4f:8001::", "3ffe::"],
  ...["3fff:1000::", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7"],
];

Deno.test("every blocked range is blocked from its first to its last address", () => {
  for (const [first, last, reason] of BLOCKED) {
    for (const address of [first, last]) {
      assertEquals(blockedReason(address)?.slice(0, reason.length), reason, address);
    }
  }
  for (const address of OPEN) assertEquals(blockedReason(address), undefined, address);
  for (const text of NO_ADDRESSES) assertEquals(blockedReason(text), "none that can be read", text);
  assertEquals(blockedReason("10.1.2.3"), "private (10.0.0.0/8)");
  assertEquals(blockedReason("4000::"), "reserved (outside 2000::/3)");
});

Deno.test("random addresses are blocked where node's own list blocks them", () => {
  const listed = new BlockList();
  const add = (type: "ipv4" | "ipv6") => (range: string) => {
    const [address = "", prefix = ""] = range.split("/");
    listed.addSubnet(address, Number(prefix), type);
  };
  Object.keys(BLOCKED_IPV4).forEach(add("ipv4"));
  Object.keys(BLOCKED_IPV6).forEach(add("ipv6"));
  const random = seededRandom(20_261_122);
  const part = (size: number) => Math.floor(random() * size);
  for (let round = 0; round < 5_000; round++) {
    const text = [part(256), part(256), part(256), part(256)].join(".");
    assertEquals(blockedReason(text) !== undefined, listed.check(text, "ipv4"), text);
    // Inside 2000::/3, without the forms that carry IPv4.
    const first = 0x2003 + part(0x1ffd);
    const address = [first, ...Array.from({ length: 7 }, () => part(0x1_0000))].map((group) =>
      group.toString(16)
    )
      .join(":");
    assertEquals(blockedReason(address) !== undefined, listed.check(address, "ipv6"), address);
  }
});

Deno.test("ranges that are opened are open in every form of their addresses, and nothing else is", () => {
  const allow = new Cidrs([
    "10.0.0.0/8",
    "127.0.0.1/32",
    "fd00::/32",
    "::ffff:192.168.1.0/120",
    "0.0.0.0/32",
  ]);
  const table: Readonly<Record<string, boolean>> = {
    ...{ "10.1.2.3": true, "11.0.0.1": true, "127.0.0.1": true, "127.0.0.2": false, "0.0.0.0": true },
    ...{
      "fd00:1::": false,
      "fd00::1": true,
      "fc00::1": false,
      "::ffff:10.1.2.3": true,
      "::ffff:127.0.0.2": false,
    },
    ...{
      "192.168.1.255": true,
      "192.168.2.0": false,
      "64:ff9b::10.0.0.1": true,
      "2002:a00:1::": true,
      "x": false,
    },
    ...{ "2001:0:a00:1::f5ff:fffe": true, "2001:0:a00:1::80ff:fffd": false, "::1": false, "::a00:1": false },
  };
  for (const [address, isOpen] of Object.entries(table)) {
    assertEquals(blockedReason(address, allow) === undefined, isOpen, address);
  }
  assertEquals(["10.0.0.1", "8.8.8.8", "x"].map((address) => allow.contains(address)), [true, false, false]);
  assertEquals(new Cidrs(["0.0.0.0/0"]).contains("::1"), false);
  for (const text of ["10.0.0.0", "10.0.0.0/33", "::/129", "x/8", "10.0.0.0/-1", "010.0.0.0/8", ""]) {
    assertEquals(
      assertThrows(() => new Cidrs([text])).message,
      `Invalid address range "${text}": expected one such as 10.0.0.0/8`,
    );
  }
});
