import { assertEquals, assertThrows } from "#assert";
import {
  decodeBucketId,
  decodeQuotaReport,
  encodeQuotaAssignment,
  QuotaResponseWriter,
} from "../../../src/wire/rlqs.ts";
import { loadProtoRoot } from "../../harness/proto_root.ts";

const PACKAGE = "envoy.service.rate_limit_quota.v3";
const root = loadProtoRoot();
const reportType = root.lookupType(`${PACKAGE}.RateLimitQuotaUsageReports`);
const idType = root.lookupType(`${PACKAGE}.BucketId`);
const responseType = root.lookupType(`${PACKAGE}.RateLimitQuotaResponse`);

function report(message: object): Uint8Array {
  return reportType.encode(reportType.fromObject(message)).finish();
}

function bucketId(bucket: object): Uint8Array {
  return idType.encode(idType.fromObject({ bucket })).finish();
}

function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text.replaceAll(" ", ""));
}

Deno.test("rlqs: a report that Envoy sent", () => {
  const usage = "0a12 0a10 0a07 6163636f756e74 1205 616c696365 1200 1801";
  const { domain, usages } = decodeQuotaReport(hex(`0a04 73686f70 1218 ${usage}`));
  const [first, ...others] = usages;
  assertEquals([domain, first?.allowed, first?.denied, first?.elapsedSeconds, others], ["shop", 1, 0, 0, []]);
  assertEquals(decodeBucketId(first?.id ?? new Uint8Array()), [{ key: "account", value: "alice" }]);
});

Deno.test("rlqs: reports of another encoder, with fields in any order", () => {
  const message = report({
    domain: "shop",
    bucket_quota_usages: [
      {
        bucket_id: { bucket: { a: "1", b: "é" } },
        time_elapsed: { seconds: 5 },
        num_requests_allowed: 3_000_000_000,
        num_requests_denied: 7,
      },
      { bucket_id: { bucket: {} } },
    ],
  });
  // The domain after the usages.
  const turned = new Uint8Array([...message.subarray(6), ...message.subarray(0, 6)]);
  for (const bytes of [message, turned]) {
    const { domain, usages } = decodeQuotaReport(bytes);
    const read = [...usages].map(({ id, ...counts }) => ({ ...counts, pairs: decodeBucketId(id) }));
    assertEquals([domain, read], ["shop", [
      {
        allowed: 3_000_000_000,
        denied: 7,
        elapsedSeconds: 5,
        pairs: [{ key: "a", value: "1" }, { key: "b", value: "é" }],
      },
      { allowed: 0, denied: 0, elapsedSeconds: 0, pairs: [] },
    ]]);
  }
});

Deno.test("rlqs: a usage that is not valid has no bucket, and a report that is not valid is an error", () => {
  const valid = report({ domain: "d", bucket_quota_usages: [{ bucket_id: { bucket: { a: "1" } } }] });
  const { usages } = decodeQuotaReport(new Uint8Array([...valid, ...hex("1202 0a05")]));
  assertEquals([...usages].map(({ id }) => id.length > 0), [true, false]);
  assertEquals(decodeBucketId(hex("0a05 61")), undefined);
  for (const bytes of ["0a", "1205 00", "07"]) {
    assertThrows(() => decodeQuotaReport(hex(bytes)), "Cannot read");
  }
});

Deno.test("rlqs: the last pair of a key counts", () => {
  const id = new Uint8Array([
    ...bucketId({ a: "1" }),
    ...bucketId({ a: "2" }),
  ]);
  assertEquals(decodeBucketId(id), [{ key: "a", value: "2" }]);
});

Deno.test("rlqs: responses are what another decoder reads", () => {
  const writer = new QuotaResponseWriter();
  const id = bucketId({ account: "alice" });
  const assign = (
    timeToLiveSeconds: number,
    strategy: Parameters<typeof encodeQuotaAssignment>[0]["strategy"],
  ) => writer.add(id, encodeQuotaAssignment({ timeToLiveSeconds, strategy }));
  assign(15, { kind: "allow_all" });
  assign(15, { kind: "deny_all" });
  assign(20, { kind: "token_bucket", maxTokens: 5, tokensPerFill: 1, fillSeconds: 12, fillNanos: 12 });
  assign(20, { kind: "token_bucket", maxTokens: 0, tokensPerFill: 0, fillSeconds: 1, fillNanos: 0 });
  writer.add(id, undefined);
  const bucket_id = { bucket: { account: "alice" } };
  const read = responseType.toObject(responseType.decode(writer.finish()), { longs: Number, enums: String });
  const action = (seconds: number, strategy: object) => ({
    bucket_id,
    quota_assignment_action: { assignment_time_to_live: { seconds }, rate_limit_strategy: strategy },
  });
  // Fields of 0 are left out.
  const once = { max_tokens: 5, tokens_per_fill: { value: 1 }, fill_interval: { seconds: 12, nanos: 12 } };
  const none = { tokens_per_fill: {}, fill_interval: { seconds: 1 } };
  assertEquals(read, {
    bucket_action: [
      action(15, { blanket_rule: "ALLOW_ALL" }),
      action(15, { blanket_rule: "DENY_ALL" }),
      action(20, { token_bucket: once }),
      action(20, { token_bucket: none }),
      { bucket_id, abandon_action: {} },
    ],
  });
});
