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
    doc:
      "The least severe messages that are logged: `trace`, `debug`, `info`, `warning` (or `warn`), `error`, " +
      "`fatal` or `panic`, in any letter case.",
  },
  LOG_FORMAT: {
    parse: oneOf(["text", "json"], { anyCase: true }),
    default: "text",
    doc: "Log lines as `text`, or as `json` objects with `@message`, `@timestamp` and `level`.",
  },
  SHUTDOWN_DELAY: time(
    "0",
    "How long calls are still taken after SIGTERM or SIGINT made the service unhealthy, so that load balancers notice.",
  ),
  LISTEN_SHARED: flag(
    "true",
    "Whether other processes may listen on the same ports, as a restart without downtime requires. `false` refuses to " +
      "start on a port in use.",
  ),
  ALLOW_UNSAFE_DENO: flag(
    "false",
    "`true` starts on a Deno release that is known to end the process while it serves.",
  ),
});

const HTTP = inGroup("HTTP and debug ports", {
  HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Interface of the HTTP port: a name, an IPv4 or an IPv6 address.",
  },
  PORT: {
    parse: parsePort,
    default: "8080",
    doc: "The HTTP port; 0 takes a free one.",
  },
  HTTP_MAX_CONNECTIONS: count(
    "0",
    "As `GRPC_MAX_CONNECTIONS`, for the HTTP port and for `TRIGGER_ADDR`, each by itself; a further connection " +
      "takes the place of one that is between two requests.",
    { min: 0, max: 1_000_000 },
  ),
  HTTP_JSON: flag("true", "`false` turns off `POST /json` on the HTTP port."),
  HTTP_SERVER_USE_TLS: flag(
    "false",
    "`true` serves HTTPS on the HTTP port, with `HTTP_SERVER_TLS_CERT` and `HTTP_SERVER_TLS_KEY`.",
  ),
  HTTP_SERVER_TLS_CERT: file(
    "PEM file with the certificate chain of the HTTP port, reloaded when it changes.",
  ),
  HTTP_SERVER_TLS_KEY: file("PEM file with the private key of the HTTP port, reloaded when it changes."),
  DEBUG_HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Interface of the debug port.",
  },
  DEBUG_PORT: {
    parse: parsePort,
    default: "6070",
    doc: "The debug port; 0 takes a free one.",
  },
  DEBUG_TOKEN: {
    parse: parseBearerToken,
    whenUnset: "no token is required",
    doc:
      "Bearer token that the debug port requires for everything but its list of paths and its health; visible ASCII without a space.",
    secret: true,
  },
  DEBUG_ALLOWED_HOSTS: {
    parse: listOf(parseHost),
    default: "",
    doc: "Further names by which the debug port may be addressed, by comma, such as those of a proxy. " +
      "Loopback names, IP addresses and `DEBUG_HOST` are always allowed.",
  },
});

const GRPC = inGroup("gRPC", {
  GRPC_HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Interface of the gRPC port: a name, an IPv4 or an IPv6 address.",
  },
  GRPC_PORT: {
    parse: parsePort,
    default: "8081",
    doc: "The gRPC port; 0 takes a free one.",
  },
  GRPC_MAX_CONNECTIONS: count(
    "0",
    "Open gRPC connections beyond which further ones are closed; 0 sets no limit until file descriptors run " +
      "out, and then for a minute seven eighths of those that were open.",
    { min: 0, max: 1_000_000 },
  ),
  GRPC_UDS: file("Path of a unix socket on which gRPC is served instead of the TCP port.", "TCP is used"),
  GRPC_UDS_MODE: {
    parse: parseFileMode,
    whenUnset: "as the process's umask leaves it",
    doc: "Permissions of the gRPC unix socket in octal, such as `0660`.",
  },
  GRPC_MAX_CONNECTION_AGE: time(
    "24h",
    "Duration, spread by 10 % either way, after which a gRPC connection is drained; 0 means never.",
  ),
  GRPC_MAX_CONNECTION_AGE_GRACE: time("1h", "Duration after which a drained gRPC connection is closed."),
  GRPC_ENGINE: choice(
    ["grpc-js", "native"],
    "native",
    "What carries gRPC: Weir's own HTTP/2, `native`, or the library `grpc-js`.",
  ),
  GRPC_SERVER_USE_TLS: flag(
    "false",
    "`true` serves gRPC over TLS 1.2 or 1.3; requires `GRPC_SERVER_TLS_CERT` and `GRPC_SERVER_TLS_KEY`.",
  ),
  GRPC_SERVER_TLS_CERT: file(
    "PEM file with the certificate chain of the gRPC port, reloaded when it changes.",
  ),
  GRPC_SERVER_TLS_KEY: file("PEM file with the private key of the gRPC port, reloaded when it changes."),
  GRPC_CLIENT_TLS_CACERT: file(
    "PEM file of the authority that signs the client certificates that gRPC then requires; requires `GRPC_SERVER_USE_TLS`.",
    "client certificates are not required",
  ),
  GRPC_CLIENT_TLS_SAN: {
    parse: parseText,
    whenUnset: "any name",
    doc: "DNS name that a client certificate must carry; requires `GRPC_CLIENT_TLS_CACERT`.",
  },
});

/** Settings of the process and its listeners. */
export const SERVER_TABLE = { ...PROCESS, ...HTTP, ...GRPC };
