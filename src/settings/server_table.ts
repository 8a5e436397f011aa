import { parseHost, parsePort } from "./address_parsers.ts";
import { listOf, oneOf, parseBearerToken, parseFileMode, parseText } from "./parsers.ts";
import { choice, count, file, flag, inGroup, time } from "./rows.ts";

const PROCESS = inGroup("Process", {
  LOG_LEVEL: {
    parse: oneOf(["trace", "debug", "info", "warning", "error", "fatal", "panic"], {
      anyCase: true,
      aliases: { warn: "warning" },
    }),
    default: "warning",
    doc: "Least severe level that is logged: `trace`, `debug`, `info`, `warning` (or `warn`), `error`, " +
      "`fatal` or `panic`, in any letter case. `warning` also shows the start and the stop, as `info` lines.",
  },
  LOG_FORMAT: {
    parse: oneOf(["text", "json"], { anyCase: true }),
    default: "text",
    doc: "Format of log lines: `text`, or `json` for objects with `@message`, `@timestamp` and `level`.",
  },
  SHUTDOWN_DELAY: time(
    "0",
    "Time between SIGTERM or SIGINT and the closing of the ports, for example `5s`. During this time, " +
      "Weir reports itself as unhealthy and still serves calls, so that load balancers can remove it.",
  ),
  LISTEN_SHARED: flag(
    "true",
    "`true` allows several processes to listen on the same ports, which a restart without downtime " +
      "requires. With `false`, Weir does not start if a port is in use. " +
      "`deno task start` sets `false`.",
  ),
  WORKERS: count(
    "1",
    "Number of threads that decide gRPC calls, 1 to 64. They share the gRPC port. Each thread has its own " +
      "connections to the cache, local cache, counters of the mode `local`, `MAX_IN_FLIGHT` and " +
      "`GRPC_MAX_CONNECTIONS`. 2 or more require `BACKEND_TYPE=kv` or `mc`, Linux and the TCP port.",
    { min: 1, max: 64 },
  ),
  NOTIFY_SOCKET: file(
    "Unix socket of a service manager, which systemd sets for a unit with `Type=notify`. Weir reports to it when " +
      "all its ports are open, and when it begins to stop.",
    "nothing is reported",
  ),
  ALLOW_UNSAFE_DENO: flag(
    "false",
    "`true` starts Weir with `GRPC_ENGINE=grpc-js` even on a Deno release that a gRPC peer can abort then.",
  ),
});

const HTTP = inGroup("HTTP and debug ports", {
  HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Address that the HTTP port listens on: a host name, an IPv4 address or an IPv6 address.",
  },
  PORT: {
    parse: parsePort,
    default: "8080",
    doc: "Port of the HTTP listener, 0 to 65535; 0 picks a free port.",
  },
  HTTP_MAX_CONNECTIONS: count(
    "0",
    "Maximum number of open connections on the HTTP port, and separately on `TRIGGER_ADDR`; up to " +
      "1000000. A further connection replaces one that is idle between two requests; if none is idle, it " +
      "is closed. 0 sets no limit until file descriptors run out.",
    { min: 0, max: 1_000_000 },
  ),
  HTTP_JSON: flag("true", "`false` disables `POST /json` on the HTTP port."),
  HTTP_SERVER_USE_TLS: flag(
    "false",
    "`true` serves HTTPS on the HTTP port and on `TRIGGER_ADDR`; requires `HTTP_SERVER_TLS_CERT` and " +
      "`HTTP_SERVER_TLS_KEY`.",
  ),
  HTTP_SERVER_TLS_CERT: file(
    "PEM file with the certificate chain of the HTTP port; reloaded when it changes.",
  ),
  HTTP_SERVER_TLS_KEY: file("PEM file with the private key of the HTTP port; reloaded when it changes."),
  DEBUG_HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Address that the debug port listens on.",
  },
  DEBUG_PORT: {
    parse: parsePort,
    default: "6070",
    doc: "Port of the debug listener, 0 to 65535; 0 picks a free port.",
  },
  DEBUG_TOKEN: {
    parse: parseBearerToken,
    whenUnset: "no token is required",
    doc: "Bearer token that the debug port requires for every path except its list of paths, the health " +
      "checks and the files of the web page. Use visible ASCII characters without spaces.",
    secret: true,
  },
  DEBUG_ALLOWED_HOSTS: {
    parse: listOf(parseHost),
    default: "",
    doc: "Additional host names that requests to the debug port may use, separated by commas, such as the " +
      "name of a proxy. Loopback names, IP addresses and `DEBUG_HOST` are always allowed.",
  },
});

const GRPC = inGroup("gRPC", {
  GRPC_HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Address that the gRPC port listens on: a host name, an IPv4 address or an IPv6 address.",
  },
  GRPC_PORT: {
    parse: parsePort,
    default: "8081",
    doc: "Port of the gRPC listener, 0 to 65535; 0 picks a free port.",
  },
  GRPC_MAX_CONNECTIONS: count(
    "0",
    "Maximum number of open gRPC connections, up to 1000000; further connections are closed. 0 sets no " +
      "limit. If file descriptors run out, the limit is 7/8 of the open connections for one minute.",
    { min: 0, max: 1_000_000 },
  ),
  QUOTA_MAX_STREAMS: count(
    "1000",
    "Maximum number of streams of clients that enforce quotas; further streams end with RESOURCE_EXHAUSTED.",
    { min: 1, max: 100_000 },
  ),
  QUOTA_MAX_BUCKETS_PER_STREAM: count(
    "10000",
    "Maximum number of buckets of one stream; `QUOTA_OVERFLOW` decides requests of further buckets.",
    { min: 1, max: 10_000 },
  ),
  QUOTA_MAX_BUCKETS: count(
    "1000000",
    "Maximum number of buckets of all streams; `QUOTA_OVERFLOW` decides requests of further buckets.",
    { min: 1, max: 10_000_000 },
  ),
  QUOTA_OVERFLOW: choice(
    ["deny", "allow"],
    "deny",
    "What clients do with requests of buckets above a maximum: `deny` or `allow`.",
  ),
  GRPC_UDS: file("Path of a unix socket that serves gRPC instead of the TCP port.", "gRPC uses TCP"),
  GRPC_UDS_MODE: {
    parse: parseFileMode,
    whenUnset: "set by the umask of the process",
    doc: "File permissions of the gRPC unix socket in octal, for example `0660`.",
  },
  GRPC_MAX_CONNECTION_AGE: time(
    "24h",
    "Age at which a gRPC connection is drained, varied by up to 10 % in both directions; 0 means never.",
  ),
  GRPC_MAX_CONNECTION_AGE_GRACE: time(
    "1h",
    "Time after which a drained gRPC connection is closed, even with calls in flight.",
  ),
  GRPC_ENGINE: choice(
    ["grpc-js", "native"],
    "native",
    "HTTP/2 implementation of the gRPC port: `native` (part of Weir) or `grpc-js` (the library).",
  ),
  GRPC_SERVER_USE_TLS: flag(
    "false",
    "`true` serves gRPC over TLS 1.2 or 1.3; requires `GRPC_SERVER_TLS_CERT` and `GRPC_SERVER_TLS_KEY`.",
  ),
  GRPC_SERVER_TLS_CERT: file(
    "PEM file with the certificate chain of the gRPC port; reloaded when it changes.",
  ),
  GRPC_SERVER_TLS_KEY: file("PEM file with the private key of the gRPC port; reloaded when it changes."),
  GRPC_CLIENT_TLS_CACERT: file(
    "PEM file with the certificate authorities of gRPC clients. If set, each client must present a " +
      "certificate signed by one of them; requires `GRPC_SERVER_USE_TLS`.",
    "client certificates are not required",
  ),
  GRPC_CLIENT_TLS_SAN: {
    parse: parseText,
    whenUnset: "any name is accepted",
    doc: "DNS name that the certificate of a gRPC client must contain; requires `GRPC_CLIENT_TLS_CACERT`.",
  },
});

/** Settings of the process and its listeners. */
export const SERVER_TABLE = { ...PROCESS, ...HTTP, ...GRPC };
