import { assertEquals, assertThrows } from "#assert";
import {
  decodeRateLimitRequest,
  decodeRateLimitResponse,
  encodeRateLimitRequest,
  encodeRateLimitResponse,
  type WireDescriptor,
  type WireDescriptorStatus,
  type WireEntry,
  type WireRateLimitRequest,
  type WireRateLimitResponse,
} from "../../../src/wire/rls.ts";
import type { WireStruct, WireValue } from "../../../src/wire/struct.ts";
import { loadProtoRoot } from "../../harness/proto_root.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { bySize, SOAK_SEED } from "../../soak/soak_options.ts";

const ROOT = loadProtoRoot();
const REQUEST_CODEC = ROOT.lookupType("envoy.service.ratelimit.v3.RateLimitRequest");
const RESPONSE_CODEC = ROOT.lookupType("envoy.service.ratelimit.v3.RateLimitResponse");
const ROUNDS = bySize({ short: 500, full: 20_000 });
const TEXTS = ["", "k", "remote_address", "10.0.0.1", "ключ", "値", "🦕"].concat(
  ["x".repeat(70), "é".repeat(130), "y".repeat(900)],
);

const HITS = [
  { name: "0", hex: "", hits: 0 },
  { name: "2^32", hex: "088080808010", hits: 2 ** 32 },
  { name: "2^53 - 1", hex: "08ffffffffffffff0f", hits: 2 ** 53 - 1 },
  { name: "2^53", hex: "088080808080808010", hits: 2 ** 53 },
  { name: "2^53 + 1 as too large", hex: "088180808080808010", hits: 2 ** 53 + 2 },
  { name: "2^53 + 2^32 as too large", hex: "088080808090808010", hits: 2 ** 53 + 2 },
  { name: "2^63 as too large", hex: "0880808080808080808001", hits: 2 ** 53 + 2 },
  { name: "2^64 - 1 as too large", hex: "08ffffffffffffffffff01", hits: 2 ** 53 + 2 },
];

for (const { name, hex, hits } of HITS) {
  Deno.test(`hits of a descriptor are read: ${name}`, () => {
    const wrapper = Uint8Array.fromHex(hex);
    const bytes = Uint8Array.from([0x12, wrapper.length + 2, 0x1a, wrapper.length, ...wrapper]);
    assertEquals(decodeRateLimitRequest(bytes).descriptors, [descriptor({ hitsAddend: hits })]);
  });
}

const MERGED: readonly (readonly [name: string, hex: string, read: Partial<WireDescriptor>])[] = [
  ["an override in two parts", "12081202080912021003", { limit: { requestsPerUnit: 9, unit: 3 } }],
  ["an override with an unknown number", "120912070809100218ac02", {
    limit: { requestsPerUnit: 9, unit: 2, unknownField: 3 },
  }],
  ["an override with two unknown fields", "120b120908091a0208052a0101", {
    limit: { requestsPerUnit: 9, unit: 0, unknownField: 3 },
  }],
  ["an override in two parts, the first with an unknown field", "120a12021802120408091002", {
    limit: { requestsPerUnit: 9, unit: 2, unknownField: 3 },
  }],
  ["an override with the highest unknown field", "120c120a08091002f8ffffff0f01", {
    limit: { requestsPerUnit: 9, unit: 2, unknownField: 536_870_911 },
  }],
  ["hits in two parts", "12061a0208051a00", { hitsAddend: 5 }],
  ["hits of two values", "12081a0208051a020806", { hitsAddend: 6 }],
  ["hits given back", "12022001", { isNegativeHits: true }],
  ["a boolean above 32 bits", "1206208080808020", { isNegativeHits: true }],
  ["a unit below 0", "120d120b10ffffffffffffffffff01", { limit: { requestsPerUnit: 0, unit: -1 } }],
];

for (const [name, hex, read] of MERGED) {
  Deno.test(`a request is read with ${name}`, () => {
    const expected = { domain: "", descriptors: [descriptor(read)], hitsAddend: 0 };
    assertEquals(decodeRateLimitRequest(Uint8Array.fromHex(hex)), expected);
  });
}

Deno.test("a request is written with only the entries of a descriptor given", () => {
  const bytes = encodeRateLimitRequest({
    domain: "d",
    descriptors: [{ entries: [{ key: "k", value: "" }] }],
  });
  assertEquals(bytes.toHex(), "0a016412050a030a016b");
});

Deno.test("a response is read with a limit and a time in two parts", () => {
  const bytes = Uint8Array.fromHex("121512040805100212031a017812020809220208012200");
  assertEquals(decodeRateLimitResponse(bytes).statuses, [{
    code: 0,
    currentLimit: { name: "x", requestsPerUnit: 9, unit: 2 },
    limitRemaining: 0,
    secondsUntilReset: 1,
  }]);
});

const SECONDS: readonly (readonly [name: string, seconds: number, hex: string])[] = [
  ["0, which is there", 0, "12022200"],
  ["beyond 32 bits", 2 ** 32 * 31_536_000, "120c220a088080808080f0ccf001"],
  ["below 0", -1, "120d220b08ffffffffffffffffff01"],
];

for (const [name, secondsUntilReset, hex] of SECONDS) {
  Deno.test(`seconds until reset are written and read: ${name}`, () => {
    const response = responseOf({ code: 0, currentLimit: undefined, limitRemaining: 0, secondsUntilReset });
    const bytes = encodeRateLimitResponse(response);
    assertEquals([bytes.toHex(), decodeRateLimitResponse(bytes)], [hex, response]);
  });
}

const REFUSED: readonly (readonly [name: string, write: () => unknown, message: string])[] = [
  [
    "request hits beyond 32 bits",
    () => encodeRateLimitRequest({ domain: "d", descriptors: [], hitsAddend: 2 ** 32 }),
    'field 3 as "4294967296": it must be a whole number from 0 to 4294967295',
  ],
  [
    "descriptor hits that are not whole",
    () => encodeRateLimitRequest({ domain: "d", descriptors: [{ entries: [], hitsAddend: 1.5 }] }),
    'field 1 as "1.5": it must be a whole number from 0 to below 2^64',
  ],
  [
    "a code that is no number",
    () => encodeRateLimitResponse({ overallCode: NaN, statuses: [], responseHeadersToAdd: [] }),
    'field 1 as "NaN": it must be a signed 32-bit number',
  ],
  [
    "seconds without end",
    () => encodeRateLimitResponse(responseOf({ code: 1, limitRemaining: 0, secondsUntilReset: Infinity })),
    'field 1 as "Infinity": it must be a whole number within 2^63 of 0',
  ],
];

for (const [name, write, message] of REFUSED) {
  Deno.test(`an encoder refuses ${name}, and the next message is written well`, () => {
    const error = assertThrows(write);
    assertEquals([error.name, error.message], ["WireError", `Cannot write ${message}`]);
    assertEquals(encodeRateLimitRequest({ domain: "d", descriptors: [] }).toHex(), "0a0164");
  });
}

Deno.test("messages do not change when later ones are written", () => {
  const requests = Array.from({ length: 2_000 }, (_, index) => randomRequest(seededRandom(index)));
  const written = requests.map((request) => encodeRateLimitRequest(request));
  assertEquals(written.map((bytes) => decodeRateLimitRequest(bytes)), requests);
});

Deno.test("random requests agree with protobufjs both ways", () => {
  const random = seededRandom(SOAK_SEED);
  for (let round = 0; round < ROUNDS; round++) {
    const request = randomRequest(random);
    const theirs = REQUEST_CODEC.encode(REQUEST_CODEC.fromObject(requestObject(request))).finish();
    assertEquals(decodeRateLimitRequest(theirs), request);
    const ours = encodeRateLimitRequest(request);
    assertEquals(REQUEST_CODEC.toObject(REQUEST_CODEC.decode(ours)), REQUEST_CODEC.toObject(slim(theirs)));
    assertEquals(decodeRateLimitRequest(ours), request);
  }
});

Deno.test("random responses agree with protobufjs both ways", () => {
  const random = seededRandom(1 + SOAK_SEED);
  for (let round = 0; round < ROUNDS; round++) {
    const response = randomResponse(random);
    const theirs = RESPONSE_CODEC.encode(RESPONSE_CODEC.fromObject(responseObject(response))).finish();
    assertEquals(decodeRateLimitResponse(theirs), response);
    const ours = encodeRateLimitResponse(response);
    assertEquals(decodeRateLimitResponse(ours), response);
    assertEquals(
      decodeRateLimitResponse(RESPONSE_CODEC.encode(RESPONSE_CODEC.decode(ours)).finish()),
      response,
    );
  }
});

function descriptor(set: Partial<WireDescriptor>): WireDescriptor {
  return { entries: [], limit: undefined, hitsAddend: undefined, isNegativeHits: false, ...set };
}

function responseOf(status: WireDescriptorStatus): WireRateLimitResponse {
  return { overallCode: 0, statuses: [status], responseHeadersToAdd: [], dynamicMetadata: undefined };
}

/** The same message as protobufjs reads it from our own bytes, so that written defaults do not count as a difference. */
function slim(bytes: Uint8Array) {
  return REQUEST_CODEC.decode(encodeRateLimitRequest(decodeRateLimitRequest(bytes)));
}

function pick<T>(random: () => number, items: readonly T[]): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new RangeError("Cannot pick: the list must not be empty");
  return item;
}

function some<T>(random: () => number, make: () => T): T[] {
  return Array.from({ length: Math.floor(random() * 4) }, make);
}

function maybe<T>(random: () => number, make: () => T): T | undefined {
  return random() < 0.5 ? make() : undefined;
}

function whole(random: () => number, bits: number): number {
  return Math.floor(random() * 2 ** Math.floor(random() * (bits + 1)));
}

function randomEntry(random: () => number): WireEntry {
  return { key: pick(random, TEXTS), value: pick(random, TEXTS) };
}

function randomRequest(random: () => number): WireRateLimitRequest {
  return {
    domain: pick(random, TEXTS),
    descriptors: some(random, () => ({
      entries: some(random, () => randomEntry(random)),
      limit: maybe(random, () => ({ requestsPerUnit: whole(random, 32), unit: whole(random, 3) })),
      hitsAddend: maybe(random, () => whole(random, 53)),
      isNegativeHits: random() < 0.5,
    })),
    hitsAddend: whole(random, 32),
  };
}

function randomResponse(random: () => number): WireRateLimitResponse {
  return {
    overallCode: whole(random, 2),
    statuses: some(random, () => ({
      code: whole(random, 2),
      currentLimit: maybe(random, () => ({
        name: pick(random, TEXTS),
        requestsPerUnit: whole(random, 32),
        unit: whole(random, 3),
      })),
      limitRemaining: whole(random, 32),
      secondsUntilReset: maybe(random, () => whole(random, 53)),
    })),
    responseHeadersToAdd: some(random, () => randomEntry(random)),
    dynamicMetadata: maybe(random, () => randomStruct(random, 3)),
  };
}

function randomStruct(random: () => number, depth: number): WireStruct {
  return Object.fromEntries(some(random, () => [pick(random, TEXTS), randomValue(random, depth)]));
}

function randomValue(random: () => number, depth: number): WireValue {
  const kind = Math.floor(random() * (depth > 0 ? 6 : 4));
  if (kind === 0) return null;
  if (kind === 1) return random() < 0.5;
  if (kind === 2) return whole(random, 60) / 8;
  if (kind === 3) return pick(random, TEXTS);
  if (kind === 4) return some(random, () => randomValue(random, depth - 1));
  return randomStruct(random, depth - 1);
}

function requestObject(request: WireRateLimitRequest) {
  return {
    domain: request.domain,
    descriptors: request.descriptors.map(({ entries, limit, hitsAddend, isNegativeHits }) => ({
      entries,
      ...(limit && { limit: { requests_per_unit: limit.requestsPerUnit, unit: limit.unit } }),
      ...(hitsAddend !== undefined && { hits_addend: { value: hitsAddend } }),
      is_negative_hits: isNegativeHits,
    })),
    hits_addend: request.hitsAddend,
  };
}

function responseObject(response: WireRateLimitResponse) {
  return {
    overall_code: response.overallCode,
    statuses: response.statuses.map(({ code, currentLimit, limitRemaining, secondsUntilReset }) => ({
      code,
      ...(currentLimit && {
        current_limit: {
          name: currentLimit.name,
          requests_per_unit: currentLimit.requestsPerUnit,
          unit: currentLimit.unit,
        },
      }),
      limit_remaining: limitRemaining,
      ...(secondsUntilReset !== undefined && { duration_until_reset: { seconds: secondsUntilReset } }),
    })),
    response_headers_to_add: response.responseHeadersToAdd,
    ...(response.dynamicMetadata && { dynamic_metadata: structObject(response.dynamicMetadata) }),
  };
}

function structObject(struct: WireStruct): object {
  return {
    fields: Object.fromEntries(Object.entries(struct).map(([key, value]) => [key, valueObject(value)])),
  };
}

/** In camel case, because protobufjs brings its own copy of this file. */
function valueObject(value: WireValue): object {
  if (value === null) return { nullValue: 0 };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number") return { numberValue: value };
  if (typeof value === "string") return { stringValue: value };
  if (isList(value)) return { listValue: { values: value.map(valueObject) } };
  return { structValue: structObject(value) };
}

function isList(value: WireStruct | readonly WireValue[]): value is readonly WireValue[] {
  return Array.isArray(value);
}
