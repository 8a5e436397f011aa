import { assertEquals, assertThrows } from "#assert";
import { DISCOVERY_RESPONSE } from "../../../src/wire/discovery.ts";
import { decodeFileDescriptor } from "../../../src/wire/file_descriptor.ts";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE } from "../../../src/wire/health.ts";
import { RATE_LIMIT_CONFIG } from "../../../src/wire/rate_limit_config.ts";
import { decodeReflectionRequest } from "../../../src/wire/reflection.ts";
import { decodeRateLimitRequest, decodeRateLimitResponse } from "../../../src/wire/rls.ts";
import { WireError } from "../../../src/wire/wire_format.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { bySize, SOAK_SEED } from "../../soak/soak_options.ts";

/** Bytes, the field of the request at fault (`entry` for the first entry), and the fault. */
const MALFORMED: readonly (readonly [name: string, hex: string, where: string, fault: string])[] = [
  ["length beyond the end", "12280a050a016b", "field 2", "length 40 goes beyond the 5 bytes left"],
  ["length beyond its message", "12030a0501180a", "entry", "length 5 goes beyond the 1 byte left"],
  [
    "length of 2^63",
    "1280808080808080808001",
    "field 2",
    "length 9223372036854776000 goes beyond the 0 bytes left",
  ],
  ["missing length", "0a", "field 1", "its number is cut off after 0 bytes"],
  ["truncated number", "18ffff", "field 3", "its number is cut off after 2 bytes"],
  ["number of 11 bytes", "18ffffffffffffffffffff01", "field 3", "its number is longer than 10 bytes"],
  ["truncated tag", "80", "a field", "its number is cut off after 1 byte"],
  ["tag of 11 bytes", "ffffffffffffffffffff01", "a field", "its number is longer than 10 bytes"],
  ["tag beyond 32 bits", "808080801000", "a field", "its tag is longer than 32 bits"],
  ["field number 0", "0000", "a field", "0 is not a field number"],
  ["wire type 6", "0e", "field 1", "6 is not a wire type"],
  ["wire type 7", "0f", "field 1", "7 is not a wire type"],
  ["end of a group that has not begun", "2c", "field 5", "a group ends that has not begun"],
  ["group without an end", "2b0a0161", "a field", "a group has no end"],
  ["group with another end", "2b34", "field 6", "another group ends than the one that has begun"],
  ["group cut off within a field", "2b0a05612c", "field 1", "length 5 goes beyond the 2 bytes left"],
  ["truncated 8 bytes", "29000000", "field 5", "its 8 bytes go beyond the 3 bytes left"],
  ["truncated 4 bytes", "2d00", "field 5", "its 4 bytes go beyond the 1 byte left"],
];

for (const [name, hex, where, fault] of MALFORMED) {
  Deno.test(`a decoder refuses ${name}`, () => {
    const error = assertThrows(() => decodeRateLimitRequest(Uint8Array.fromHex(hex)));
    const place = where === "entry" ? 'field 1 of "RateLimitDescriptor"' : `${where} of "RateLimitRequest"`;
    assertEquals([error.name, error.message], ["WireError", `Cannot read ${place}: ${fault}`]);
  });
}

const NOT_UTF8 = [
  { name: "a cut character", hex: "0a02c328", text: "\udcc3(" },
  { name: "half a surrogate pair", hex: "0a03eda080", text: "\udced\udca0\udc80" },
  { name: "Latin-1", hex: "0a04636166e9", text: "caf\udce9" },
  { name: "a byte in more than 64", hex: `0a42${"61".repeat(65)}ff`, text: `${"a".repeat(65)}\udcff` },
];

for (const { name, hex, text } of NOT_UTF8) {
  Deno.test(`text that is not UTF-8, ${name}: a request keeps its bytes, other messages are refused`, () => {
    const bytes = Uint8Array.fromHex(hex);
    const entry = Uint8Array.of(0x12, bytes.length + 2, 0x0a, bytes.length, ...bytes);
    const value = Uint8Array.of(0x12, bytes.length + 2, 0x0a, bytes.length, 0x12, ...bytes.subarray(1));
    assertEquals(decodeRateLimitRequest(bytes).domain, text);
    assertEquals(decodeRateLimitRequest(entry).descriptors[0]?.entries, [{ key: text, value: "" }]);
    assertEquals(decodeRateLimitRequest(value).descriptors[0]?.entries, [{ key: "", value: text }]);
    assertEquals(
      assertThrows(() => HEALTH_CHECK_REQUEST.decode(bytes)).message,
      'Cannot read field 1 of "HealthCheckRequest": its text is not UTF-8',
    );
  });
}

Deno.test("a decoder passes over groups that are nested 100 deep, and no deeper", () => {
  const nested = (depth: number) => Uint8Array.fromHex(`${"2b".repeat(depth)}${"2c".repeat(depth)}1805`);
  assertEquals(decodeRateLimitRequest(nested(100)).hitsAddend, 5);
  assertEquals(
    assertThrows(() => decodeRateLimitRequest(nested(101))).message,
    'Cannot read field 5 of "RateLimitRequest": messages are nested more than 100 deep',
  );
});

Deno.test("a decoder reads messages that stand 100 deep, and no deeper", () => {
  // A rule within a rule; the outermost is the second level.
  const nested = (depth: number): Uint8Array => {
    let bytes: number[] = [];
    for (let level = 0; level < depth; level++) {
      bytes = [level === depth - 1 ? 0x1a : 0x22, ...lengthBytes(bytes.length), ...bytes];
    }
    return Uint8Array.from(bytes);
  };
  let depth = 0;
  for (let rules = RATE_LIMIT_CONFIG.decode(nested(100)).descriptors; rules.length > 0; depth++) {
    rules = rules[0]?.descriptors ?? [];
  }
  assertEquals(depth, 100);
  assertEquals(
    assertThrows(() => RATE_LIMIT_CONFIG.decode(nested(101))).message,
    'Cannot read field 4 of "RateLimitDescriptor": messages are nested more than 100 deep',
  );
});

function lengthBytes(length: number): number[] {
  return length < 128 ? [length] : [length % 128 + 128, length >> 7];
}

const READ = [
  { name: "unknown fields of every kind", hex: "0a016128ff0131000000000000000035000000003a02ffff1805" },
  { name: "groups, nested and around known fields", hex: "0a01612b0a0162331801342c0b0c1805" },
  { name: "known fields of another wire type", hex: "0a016108051a02050510011805" },
  { name: "the last of several numbers and texts", hex: "0a01620a016118061805" },
  { name: "only the low 32 bits of a number", hex: "0a0161188580808080808080f001" },
];

for (const { name, hex } of READ) {
  Deno.test(`a decoder reads ${name}`, () => {
    const { domain, hitsAddend } = decodeRateLimitRequest(Uint8Array.fromHex(hex));
    assertEquals({ domain, hitsAddend }, { domain: "a", hitsAddend: 5 });
  });
}

const TEXTS = [
  { name: "a zero and an end of ASCII", text: "a\u0000b\u007f" },
  { name: "63 bytes", text: "x".repeat(63) },
  { name: "64 bytes", text: "x".repeat(64) },
  { name: "65 bytes", text: "x".repeat(65) },
  { name: "a letter beyond ASCII after seven within", text: "abcdefgé" },
  { name: "a byte order mark", text: "\ufeffa" },
  { name: "four bytes a letter", text: "🦕🦕" },
];

for (const { name, text } of TEXTS) {
  Deno.test(`a decoder reads a text of ${name}`, () => {
    const content = new TextEncoder().encode(text);
    const bytes = Uint8Array.from([0x0a, content.length, ...content]);
    assertEquals(HEALTH_CHECK_REQUEST.decode(bytes), { service: text });
  });
}

Deno.test("a decoder reads a view that begins within its buffer", () => {
  const inside = Uint8Array.fromHex("ffff0a0162091111111111110040ff").subarray(2, 14);
  assertEquals(HEALTH_CHECK_REQUEST.decode(inside), { service: "b" });
});

const DECODERS: Readonly<Record<string, (bytes: Uint8Array) => unknown>> = {
  decodeRateLimitRequest,
  decodeRateLimitResponse,
  decodeHealthCheckRequest: (bytes: Uint8Array) => HEALTH_CHECK_REQUEST.decode(bytes),
  decodeHealthCheckResponse: (bytes: Uint8Array) => HEALTH_CHECK_RESPONSE.decode(bytes),
  decodeDiscoveryResponse: (bytes: Uint8Array) => DISCOVERY_RESPONSE.decode(bytes),
  decodeRateLimitConfig: (bytes: Uint8Array) => RATE_LIMIT_CONFIG.decode(bytes),
  decodeReflectionRequest,
  decodeFileDescriptor,
};

for (const [name, decode] of Object.entries(DECODERS)) {
  Deno.test(`${name} answers random bytes or throws a WireError`, () => {
    const random = seededRandom(name.length + SOAK_SEED);
    for (let round = 0; round < bySize({ short: 2_000, full: 100_000 }); round++) {
      const bytes = Uint8Array.from(
        { length: Math.floor(random() * 40) },
        () => Math.floor(random() ** 2 * 256),
      );
      try {
        decode(bytes);
      } catch (error) {
        assertEquals(error instanceof WireError, true, `${bytes.toHex()}: ${error}`);
      }
    }
  });
}
