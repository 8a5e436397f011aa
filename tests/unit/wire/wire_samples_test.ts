import { assertEquals } from "#assert";
import {
  DISCOVERY_REQUEST,
  DISCOVERY_RESPONSE,
  type WireDiscoveryRequest,
  type WireDiscoveryResponse,
} from "../../../src/wire/discovery.ts";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE } from "../../../src/wire/health.ts";
import { RATE_LIMIT_CONFIG, type WireRateLimitConfig } from "../../../src/wire/rate_limit_config.ts";
import {
  decodeRateLimitRequest,
  decodeRateLimitResponse,
  encodeRateLimitRequest,
  encodeRateLimitResponse,
  type WireRateLimitRequest,
  type WireRateLimitResponse,
} from "../../../src/wire/rls.ts";
import { loadProtoRoot } from "../../harness/proto_root.ts";

interface Sample {
  readonly name: string;
  readonly type: string;
  readonly hex: string;
}

/** Meaning of a sample, and its way there and back. */
interface Row {
  readonly expected: unknown;
  readonly decoded: (bytes: Uint8Array) => unknown;
  readonly encoded: () => Uint8Array;
  readonly reencoded: (bytes: Uint8Array) => Uint8Array;
}

const SAMPLES: readonly Sample[] = JSON.parse(
  Deno.readTextFileSync(new URL("../../testdata/wire_samples.json", import.meta.url)),
);
const ROOT = loadProtoRoot();
const CONFIG_TYPE_URL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

const CONFIG: WireRateLimitConfig = {
  name: "cfg",
  domain: "d",
  descriptors: [{
    key: "a",
    value: "x",
    rateLimit: { unit: 3, requestsPerUnit: 7, unlimited: false, name: "n", replaces: [{ name: "o" }] },
    descriptors: [{
      key: "b",
      value: "",
      rateLimit: { unit: 0, requestsPerUnit: 0, unlimited: true, name: "", replaces: [] },
      descriptors: [],
      shadowMode: false,
      detailedMetric: false,
      quotaMode: false,
      metadata: undefined,
    }],
    shadowMode: true,
    detailedMetric: true,
    quotaMode: false,
    metadata: undefined,
  }],
};

const PLAIN = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
const NO_LIMIT = { currentLimit: undefined, secondsUntilReset: undefined };

const ROWS: Readonly<Record<string, Row>> = {
  "request, one descriptor of two entries": request({
    domain: "edge",
    descriptors: [{
      entries: [{ key: "remote_address", value: "10.0.0.1" }, { key: "path", value: "/api" }],
      ...PLAIN,
    }],
  }),
  "request, empty value, request-level hits": request({
    domain: "d",
    descriptors: [{ entries: [{ key: "k", value: "" }], ...PLAIN }],
    hitsAddend: 300,
  }),
  "request, override and descriptor-level hits of zero": request({
    domain: "d",
    descriptors: [{
      entries: [{ key: "k", value: "v" }],
      limit: { requestsPerUnit: 4_294_967_295, unit: 3 },
      hitsAddend: 0,
      isNegativeHits: false,
    }],
  }),
  "request, descriptor-level hits beyond 32 bits": request({
    domain: "d",
    descriptors: [{ ...PLAIN, entries: [{ key: "k", value: "v" }], hitsAddend: 5_000_000_000 }],
  }),
  "request, two descriptors, not ASCII": request({
    domain: "zone-é",
    descriptors: [{ entries: [{ key: "ключ", value: "値" }], ...PLAIN }, { entries: [], ...PLAIN }],
  }),
  "request, empty": request({ domain: "", descriptors: [] }),
  "response, within the limit": response({
    overallCode: 1,
    statuses: [{
      code: 1,
      currentLimit: { name: "n", requestsPerUnit: 10, unit: 2 },
      limitRemaining: 9,
      secondsUntilReset: 40,
    }],
  }),
  "response, over, no match, unlimited": response({
    overallCode: 2,
    statuses: [
      {
        code: 2,
        currentLimit: { name: "", requestsPerUnit: 1, unit: 7 },
        limitRemaining: 0,
        secondsUntilReset: 604_800,
      },
      { code: 1, limitRemaining: 0, ...NO_LIMIT },
      { code: 1, limitRemaining: 4_294_967_295, ...NO_LIMIT },
    ],
  }),
  "response, headers and metadata": response({
    overallCode: 1,
    statuses: [],
    responseHeadersToAdd: [{ key: "RateLimit-Limit", value: "10" }],
    dynamicMetadata: { domain: "d", hitsAddend: 2, l: [true, null], m: { a: "b" } },
  }),
  "health request": message({ service: "ratelimit" }, HEALTH_CHECK_REQUEST),
  "health response": message({ status: 2 }, HEALTH_CHECK_RESPONSE),
  "configuration resource": message(CONFIG, RATE_LIMIT_CONFIG),
  "discovery request with a refusal": message<WireDiscoveryRequest>(
    {
      versionInfo: "3",
      node: { id: "default", cluster: "", metadata: { k: "v" } },
      resourceNames: [],
      typeUrl: CONFIG_TYPE_URL,
      responseNonce: "n4",
      errorDetail: { code: 3, message: "no" },
    },
    DISCOVERY_REQUEST,
  ),
  "discovery response with that resource": message<WireDiscoveryResponse>(
    {
      versionInfo: "4",
      resources: [{ typeUrl: CONFIG_TYPE_URL, value: new Uint8Array(RATE_LIMIT_CONFIG.encode(CONFIG)) }],
      typeUrl: CONFIG_TYPE_URL,
      nonce: "n4",
    },
    DISCOVERY_RESPONSE,
  ),
};

Deno.test("every wire sample has a row", () => {
  assertEquals(SAMPLES.map((sample) => sample.name), Object.keys(ROWS));
});

for (const { name, type, hex } of SAMPLES) {
  const bytes = Uint8Array.fromHex(hex);

  Deno.test(`our codec agrees with the wire sample: ${name}`, () => {
    const { expected, decoded, encoded, reencoded } = ROWS[name] ??
      row(undefined, () => undefined, () => bytes);
    assertEquals(decoded(bytes), expected);
    assertEquals(encoded().toHex(), hex);
    assertEquals(reencoded(bytes).toHex(), hex);
  });

  Deno.test(`the .proto files agree with the wire sample: ${name}`, () => {
    const codec = ROOT.lookupType(type);
    assertEquals(Uint8Array.from(codec.encode(codec.decode(bytes)).finish()).toHex(), hex);
  });
}

function row<T>(expected: T, decode: (bytes: Uint8Array) => T, encode: (value: T) => Uint8Array): Row {
  return {
    expected,
    decoded: decode,
    encoded: () => encode(expected),
    reencoded: (bytes) => encode(decode(bytes)),
  };
}

function message<T>(
  expected: T,
  codec: { decode(bytes: Uint8Array): T; encode(value: T): Uint8Array },
): Row {
  return row(expected, (bytes) => codec.decode(bytes), (value) => codec.encode(value));
}

function request(given: Omit<WireRateLimitRequest, "hitsAddend"> & { readonly hitsAddend?: number }): Row {
  const expected: WireRateLimitRequest = { hitsAddend: 0, ...given };
  return row(expected, decodeRateLimitRequest, encodeRateLimitRequest);
}

function response(
  given: Pick<WireRateLimitResponse, "overallCode" | "statuses"> & Partial<WireRateLimitResponse>,
): Row {
  const expected: WireRateLimitResponse = { responseHeadersToAdd: [], dynamicMetadata: undefined, ...given };
  return row(expected, decodeRateLimitResponse, encodeRateLimitResponse);
}
