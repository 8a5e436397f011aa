/** Whatever a client sends in a value that a proxy copies, a call is decided: an error would let it pass at most proxies. */
import { assertEquals } from "#assert";
import { Buffer } from "node:buffer";
import { GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { sharedMemcached, sharedRedis, uniqueName } from "../../harness/shared_servers.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { decodeRateLimitResponse, encodeRateLimitRequest } from "../../../src/wire/rls.ts";

const REDIS = await sharedRedis();
const MEMCACHED = await sharedMemcached();

const RULES = {
  "edge.yaml": `domain: edge
descriptors:
  - { key: one, rate_limit: { unit: year, requests_per_unit: 1 } }
  - { key: four, detailed_metric: true, rate_limit: { unit: year, requests_per_unit: 4 } }
  - { key: own, rate_limit: { unit: year, requests_per_unit: 100000 } }
  - { key: bot, value: "*bot*", rate_limit: { unit: year, requests_per_unit: 1 } }
`,
};

const latin1 = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));
/** Values that differ in at least one byte. */
const VALUES: Readonly<Record<string, Uint8Array>> = {
  "9,000 bytes": latin1("a".repeat(9_000)),
  "9,000 bytes with another end": latin1(`${"a".repeat(8_999)}b`),
  "60,000 bytes of UTF-8": new TextEncoder().encode("é".repeat(30_000)),
  "Latin-1": latin1("caf\xe9"),
  "Latin-1 that differs in the last byte": latin1("caf\xea"),
  "the character that decoders put in its place": new TextEncoder().encode("caf\ufffd"),
  "the escape that people see": latin1("caf\\xe9"),
  "half a surrogate pair": latin1("caf\xed\xa0\x80"),
  "the other half": latin1("caf\xed\xb0\x80"),
  "9,000 bytes that are not UTF-8": latin1("\xff".repeat(9_000)),
};

/** Asks with these entries, key and bytes of the value; the code of each descriptor, or the error. */
type Door = (entries: readonly (readonly [key: string, value: Uint8Array])[]) => Promise<string>;

function grpcDoor(client: GrpcClient): Door {
  return async (entries) => {
    const { code, details, messages } = await client.unary(SHOULD_RATE_LIMIT, requestBytes(entries));
    if (code !== 0) return `${code} ${details}`;
    return codesOf(messages[0]);
  };
}

function codesOf(message: Uint8Array = new Uint8Array()): string {
  return decodeRateLimitResponse(message).statuses.map(({ code }) => code === 2 ? "OVER" : "OK").join(" ");
}

/** Placeholders of the same length make room for bytes that no encoder of texts writes. */
function requestBytes(entries: Parameters<Door>[0]): Uint8Array {
  const placeholders = entries.map(([, { length }], index) =>
    String.fromCharCode(0x41 + index).repeat(length)
  );
  const bytes = Buffer.from(encodeRateLimitRequest({
    domain: "edge",
    descriptors: entries.map(([key], index) => ({ entries: [{ key, value: placeholders[index] ?? "" }] })),
  }));
  for (const [index, [, value]] of entries.entries()) {
    bytes.set(value, bytes.indexOf(placeholders[index] ?? ""));
  }
  return new Uint8Array(bytes);
}

function jsonDoor(service: ServeFixture): Door {
  return async (entries) => {
    const descriptors = entries.flatMap(([key, value], index) => [
      latin1(`${index === 0 ? "" : ","}{"entries":[{"key":"${key}","value":"`),
      // As an encoder of JSON writes a backslash.
      latin1(Buffer.from(value).toString("latin1").replaceAll("\\", "\\\\")),
      latin1(`"}]}`),
    ]);
    const parts = [latin1(`{"domain":"edge","descriptors":[`), ...descriptors, latin1("]}")];
    const { status, body } = await service.ask(new Blob(parts.map((part) => new Uint8Array(part))));
    const { statuses } = body as { readonly statuses?: readonly { readonly code: string }[] };
    if (statuses === undefined) return `${status} ${JSON.stringify(body)}`;
    return statuses.map(({ code }) => code === "OVER_LIMIT" ? "OVER" : code).join(" ");
  };
}

interface Cache extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
}

const keptOpen = (env: Readonly<Record<string, string>>): Cache => ({
  env,
  [Symbol.asyncDispose]: async () => {},
});
const memcached = (digest: string) => {
  return keptOpen({
    BACKEND_TYPE: "mc",
    MC_HOST_PORT: MEMCACHED.url,
    MC_TIMEOUT: "1m",
    MC_KEY_DIGEST: digest,
  });
};
const redis = async (threads: Readonly<Record<string, string>>) => {
  const database = await REDIS.database();
  const env = { BACKEND_TYPE: "kv", KV_URL: database.url, KV_TIMEOUT: "1m", ...threads };
  return { env, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
};
const CACHES: Readonly<
  Record<string, readonly [tools: readonly Tool[], open: () => Cache | Promise<Cache>]>
> = {
  memory: [[], () => keptOpen({ BACKEND_TYPE: "memory" })],
  "memory and a local cache": [
    [],
    () => keptOpen({ BACKEND_TYPE: "memory", LOCAL_CACHE_SIZE_IN_BYTES: "100000" }),
  ],
  redis: [["redis-server"], () => redis({})],
  "redis of two threads": [["redis-server"], () => redis({ WORKERS: "2" })],
  "memcached with digests": [["memcached"], () => memcached("true")],
  "memcached without digests": [["memcached"], () => memcached("false")],
};

for (const engine of ["native", "grpc-js"]) {
  for (const [name, [tools, open]] of Object.entries(CACHES)) {
    Deno.test({
      ...needs(
        tools,
        `client values: ${engine} and /json, ${name}: counted by their bytes, each call decided`,
      ),
      async fn() {
        await using cache = await open();
        await using service = await start({ ...cache.env, GRPC_ENGINE: engine });
        using client = new GrpcClient(service.grpcAddress);
        const [grpc, json] = [grpcDoor(client), jsonDoor(service)];
        await until("the cache", async () => await grpc([["own", latin1("a")]]) === "OK");
        const seen: Record<string, readonly string[]> = {};
        for (const [what, value] of Object.entries(VALUES)) {
          const alone = [];
          // Enough for the table of known requests, and by both doors to one counter.
          for (const door of [grpc, grpc, grpc, json, grpc, json]) alone.push(await door([["four", value]]));
          const beside = [];
          for (const door of [json, grpc, json]) {
            beside.push(await door([["one", value], ["own", latin1("b")]]));
          }
          seen[what] = [alone.join(","), beside.join(",")];
        }
        const expected = ["OK,OK,OK,OK,OVER,OVER", "OK OK,OVER OK,OVER OK"];
        assertEquals(seen, Object.fromEntries(Object.keys(VALUES).map((what) => [what, expected])));
      },
    });
  }

  Deno.test(`client values: ${engine} and /json: rules match the whole value`, async () => {
    await using service = await start({ GRPC_ENGINE: engine });
    using client = new GrpcClient(service.grpcAddress);
    const values = [latin1(`${"x".repeat(9_000)}bot`), latin1("\xff\xfebot\xff"), latin1("robot")];
    const seen = [];
    for (const value of values) {
      seen.push([await grpcDoor(client)([["bot", value]]), await jsonDoor(service)([["bot", value]])]);
    }
    assertEquals(seen, values.map(() => ["OK", "OVER"]));
  });

  Deno.test(`client values: ${engine} and /json: what is answered and shown is UTF-8, with the bytes escaped`, async () => {
    await using service = await start({ GRPC_ENGINE: engine, RESPONSE_DYNAMIC_METADATA: "true" });
    using client = new GrpcClient(service.grpcAddress);
    const value = latin1("caf\xe9");
    const { messages } = await client.unary(SHOULD_RATE_LIMIT, requestBytes([["four", value]]));
    // The decoder refuses texts that are not UTF-8.
    const { dynamicMetadata } = decodeRateLimitResponse(messages[0] ?? new Uint8Array());
    assertEquals(dynamicMetadata?.["descriptors"], [{ entries: ["four=caf\\xe9"] }]);
    const body = new Blob([
      `{"domain":"edge","descriptors":[{"entries":[{"key":"four","value":"`,
      value,
      `"}]}]}`,
    ]);
    const answer = (await service.ask(body)).body as { readonly dynamicMetadata?: unknown };
    assertEquals(answer.dynamicMetadata, dynamicMetadata);
    const pages = ["/stats", "/metrics", "/explain?domain=edge&descriptors=four=caf%e9"];
    for (const page of pages) {
      const bytes = await (await fetch(`http://${service.debugAddress}${page}`)).bytes();
      const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      const mentioned = page === "/metrics" || text.includes("caf\\xe9") || text.includes("caf\\\\xe9");
      assertEquals([page, mentioned, text.includes("\ufffd")], [page, true, false]);
    }
  });
}

for (const [name, [tools, open]] of Object.entries(CACHES)) {
  Deno.test({
    ...needs(
      tools,
      `client values: ${name}: more hits than can be counted are over the limit of that descriptor`,
    ),
    async fn() {
      await using cache = await open();
      await using service = await start(cache.env);
      using client = new GrpcClient(service.grpcAddress);
      await until("the cache", async () => await grpcDoor(client)([["own", latin1("a")]]) === "OK");
      const [many, few] = [{ entries: [{ key: "own", value: "m" }] }, {
        entries: [{ key: "own", value: "f" }],
      }];
      const request = { domain: "edge", descriptors: [{ ...many, hitsAddend: 2 ** 63 }, few] };
      const { code, messages } = await client.unary(SHOULD_RATE_LIMIT, encodeRateLimitRequest(request));
      const hitsAddend = "18446744073709551615";
      const answer = await service.ask({ domain: "edge", descriptors: [{ ...many, hitsAddend }, few] });
      const { statuses } = answer.body as { readonly statuses?: readonly { readonly code: string }[] };
      assertEquals([code, codesOf(messages[0])], [0, "OVER OK"]);
      assertEquals([answer.status, statuses?.map((one) => one.code)], [429, ["OVER_LIMIT", "OK"]]);
    },
  });
}

function start(env: Readonly<Record<string, string>>): Promise<ServeFixture> {
  return ServeFixture.start({ rules: RULES, env: { CACHE_KEY_PREFIX: `${uniqueName()}:`, ...env } });
}
