import { type Envoy, startEnvoy } from "../../tests/harness/envoy.ts";
import { freePort } from "../../tests/harness/free_port.ts";
import { percentile } from "../../tests/harness/percentile.ts";
import { until } from "../../tests/harness/until.ts";
import { startWeir } from "../../tests/harness/weir_process.ts";

const FILTERS = ["none", "quota", "ratelimit"] as const;
/** Requests of a turn follow one another on one connection; the filters take turns in each round. */
const TURN = { rounds: 60, requests: 200, warmUp: 5 } as const;
const RULES = `domain: shop
descriptors: [{ key: account, rate_limit: { unit: second, requests_per_unit: 1000000 } }]
`;
const TYPES = "type.googleapis.com/envoy.extensions.filters";
const REQUEST = new TextEncoder().encode("GET / HTTP/1.1\r\nhost: shop\r\nx-account: a\r\n\r\n");
const END = "\r\n\r\n";

/** The latency of a request to Envoy with a filter, in milliseconds. */
export interface FilterLatency {
  readonly filter: (typeof FILTERS)[number];
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Measures one Envoy without a filter, with that of quotas, and with one that asks Weir about each request. */
export async function filterLatencies(): Promise<FilterLatency[]> {
  await using weir = await startWeir({ rules: { "shop.yaml": RULES }, env: { LOG_LEVEL: "warning" } });
  await using envoy = await startEnvoy(config(weir.grpcAddress, `127.0.0.1:${freePort()}`));
  const connections = await Promise.all(FILTERS.map((filter) => connect(envoy, filter)));
  const times = FILTERS.map((): number[] => []);
  await until("the first quota", async () => {
    await connections[1]?.ask();
    const { quotas } = await (await fetch(`http://${weir.debugAddress}/quotas`)).json();
    return quotas[0]?.clients[0]?.assignment === "tokens";
  }, { intervalMs: 100 });
  for (let round = 0; round < TURN.warmUp + TURN.rounds; round++) {
    for (const offset of FILTERS.keys()) {
      const index = (round + offset) % FILTERS.length;
      for (let request = 0; request < TURN.requests; request++) {
        const ms = await connections[index]?.ask() ?? 0;
        if (round >= TURN.warmUp) times[index]?.push(ms);
      }
    }
  }
  for (const connection of connections) connection.close();
  return FILTERS.map((filter, index) => {
    const all = times[index] ?? [];
    return { filter, p50Ms: percentile(all, 50), p99Ms: percentile(all, 99) };
  });
}

/** A connection that asks and returns the time until the response, in milliseconds. */
async function connect(envoy: Envoy, filter: string) {
  const [hostname = "", port] = envoy.address(filter).split(":");
  const connection = await Deno.connect({ hostname, port: Number(port) });
  connection.setNoDelay(true);
  const buffer = new Uint8Array(4_096);
  const ask = async (): Promise<number> => {
    const startedAt = performance.now();
    await connection.write(REQUEST);
    let text = "";
    while (!text.endsWith(END)) {
      const length = await connection.read(buffer);
      if (length === null) throw new Error("Cannot measure a filter: Envoy closed the connection");
      text += new TextDecoder().decode(buffer.subarray(0, length));
    }
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`Cannot measure a filter: ${text}`);
    return performance.now() - startedAt;
  };
  return { ask, close: () => connection.close() };
}

function config(weir: string, upstream: string): object {
  const answer = { match: { prefix: "/" }, direct_response: { status: 200 } };
  const limited = {
    match: { prefix: "/" },
    route: {
      cluster: "upstream",
      rate_limits: [{
        actions: [{ request_headers: { header_name: "x-account", descriptor_key: "account" } }],
      }],
    },
  };
  const http2 = { explicit_http_config: { http2_protocol_options: {} } };
  const type = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  const options = { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": { "@type": type, ...http2 } };
  return {
    static_resources: {
      listeners: [
        ...FILTERS.map((filter) => listener(filter, "127.0.0.1:0", limited, filtersOf(filter))),
        listener("upstream", upstream, answer, []),
      ],
      clusters: [
        { ...cluster("weir", weir), typed_extension_protocol_options: options },
        cluster("upstream", upstream),
      ],
    },
  };
}

function cluster(name: string, address: string): object {
  const endpoint = { endpoint: { address: socketAddress(address) } };
  const load_assignment = { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] };
  return { name, connect_timeout: "5s", load_assignment };
}

function socketAddress(place: string): object {
  const [address, port] = place.split(":");
  return { socket_address: { address, port_value: Number(port) } };
}

function listener(name: string, place: string, route: object, filters: readonly object[]): object {
  const router = { name: "router", typed_config: { "@type": `${TYPES}.http.router.v3.Router` } };
  const connection = {
    "@type": `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: name,
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
    http_filters: [...filters, router],
  };
  return {
    name,
    address: socketAddress(place),
    filter_chains: [{ filters: [{ name: "http", typed_config: connection }] }],
  };
}

function filtersOf(filter: FilterLatency["filter"]): object[] {
  const grpc = { envoy_grpc: { cluster_name: "weir" } };
  if (filter === "none") return [];
  if (filter === "ratelimit") {
    const service = { grpc_service: grpc, transport_api_version: "V3" };
    const config = {
      "@type": `${TYPES}.http.ratelimit.v3.RateLimit`,
      domain: "shop",
      rate_limit_service: service,
    };
    return [{ name: "ratelimit", typed_config: { ...config, timeout: "5s" } }];
  }
  const header = "type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput";
  const input = { name: "account", typed_config: { "@type": header, header_name: "x-account" } };
  const settings = {
    "@type": `${TYPES}.http.rate_limit_quota.v3.RateLimitQuotaBucketSettings`,
    bucket_id_builder: { bucket_id_builder: { account: { custom_value: input } } },
    reporting_interval: "5s",
  };
  const config = {
    "@type": `${TYPES}.http.rate_limit_quota.v3.RateLimitQuotaFilterConfig`,
    domain: "shop",
    rlqs_server: grpc,
    bucket_matchers: {
      matcher_list: {
        matchers: [{
          predicate: { single_predicate: { input, value_match: { prefix: "a" } } },
          on_match: { action: { name: "quota", typed_config: settings } },
        }],
      },
    },
  };
  return [{ name: "quota", typed_config: config }];
}
