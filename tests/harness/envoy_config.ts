/** Addresses of the peers of Envoy. */
interface EnvoyPeers {
  /** Weir's gRPC port, `host:port`. */
  readonly weir: string;
  /** The server behind Envoy, `host:port`. */
  readonly upstream: string;
  /** The domain that Envoy asks for. */
  readonly domain: string;
  /** A header whose value is the descriptor (`header`, its value) of a request that has it. */
  readonly header?: string;
}

/**
 * A configuration of Envoy with the rate limit filter before one upstream: the listener `allow` lets
 * requests through while Weir cannot be asked, the listener `deny` refuses them. The descriptor of a
 * request is (`path`, its path).
 */
export function envoyConfig(peers: EnvoyPeers): object {
  return {
    static_resources: {
      listeners: [listener("allow", false, peers), listener("deny", true, peers)],
      clusters: [
        cluster("upstream", peers.upstream, {}),
        cluster("weir", peers.weir, { http2_protocol_options: {} }),
      ],
    },
  };
}

function listener(name: string, denyOnFailure: boolean, { domain, header }: EnvoyPeers): object {
  const headerAction = { request_headers: { header_name: header, descriptor_key: "header" } };
  const actions = [pathAction(), ...header === undefined ? [] : [headerAction]];
  const route = {
    match: { prefix: "/" },
    route: { cluster: "upstream", rate_limits: actions.map((action) => ({ actions: [action] })) },
  };
  const connection = {
    "@type":
      "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    stat_prefix: name,
    route_config: { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] },
    http_filters: [rateLimitFilter(denyOnFailure, domain), {
      name: "envoy.filters.http.router",
      typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
    }],
  };
  return {
    name,
    address: socketAddress("127.0.0.1:0"),
    filter_chains: [{
      filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: connection }],
    }],
  };
}

function pathAction(): object {
  return { request_headers: { header_name: ":path", descriptor_key: "path" } };
}

function rateLimitFilter(denyOnFailure: boolean, domain: string): object {
  return {
    name: "envoy.filters.http.ratelimit",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit",
      domain,
      failure_mode_deny: denyOnFailure,
      enable_x_ratelimit_headers: "DRAFT_VERSION_03",
      // Far above what an answer takes: only a Weir that is gone may count as a failure.
      timeout: "30s",
      rate_limit_service: {
        grpc_service: { envoy_grpc: { cluster_name: "weir" } },
        transport_api_version: "V3",
      },
    },
  };
}

function cluster(name: string, address: string, more: object): object {
  const endpoint = { endpoint: { address: socketAddress(address) } };
  return {
    name,
    type: "STATIC",
    connect_timeout: "10s",
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint] }] },
    ...more,
  };
}

function socketAddress(address: string): object {
  const colon = address.lastIndexOf(":");
  return {
    socket_address: { address: address.slice(0, colon), port_value: Number(address.slice(colon + 1)) },
  };
}

/** The same configuration with tracing, and with the client's `baggage` in the metadata of the calls to Weir. */
export function withTracing(config: object): object {
  const text = JSON.stringify(config, (key, value) => {
    if (key === "grpc_service") {
      return { ...value, initial_metadata: [{ key: "baggage", value: "%REQ(baggage)%" }] };
    }
    if (key === "clusters") {
      return [...value, cluster("collector", "127.0.0.1:9", { http2_protocol_options: {} })];
    }
    return value;
  });
  return JSON.parse(text, (_key, value) => {
    return value?.stat_prefix === undefined ? value : { ...value, tracing: { provider: OPEN_TELEMETRY } };
  });
}

const OPEN_TELEMETRY = {
  name: "envoy.tracers.opentelemetry",
  typed_config: {
    "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
    grpc_service: { envoy_grpc: { cluster_name: "collector" } },
    service_name: "edge",
  },
};
