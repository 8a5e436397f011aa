import {
  duration,
  integer,
  listOf,
  oneOf,
  parseBoolean,
  parseFileMode,
  parseHost,
  parsePath,
  parsePort,
  parseText,
} from "./parsers.ts";
import type { SettingTable } from "./setting.ts";
import { parseBearerToken } from "./token_parser.ts";

/** Settings of the process and its listeners. */
export const SERVER_TABLE = {
  LOG_LEVEL: {
    parse: oneOf(["trace", "debug", "info", "warning", "error", "fatal", "panic"], {
      anyCase: true,
      aliases: { warn: "warning" },
    }),
    default: "warning",
    doc:
      "The least severe messages that are logged: `trace`, `debug`, `info`, `warning` (or `warn`), `error`, " +
      "`fatal` or `panic`, in any letter case.",
    group: "Process",
  },
  LOG_FORMAT: {
    parse: oneOf(["text", "json"], { anyCase: true }),
    default: "text",
    doc: "Log lines as `text`, or as `json` objects with `@message`, `@timestamp` and `level`.",
    group: "Process",
  },
  SHUTDOWN_DELAY: {
    parse: duration(),
    default: "0",
    doc:
      "How long calls are still taken after SIGTERM or SIGINT turned health bad, so that load balancers notice.",
    group: "Process",
  },
  LISTEN_SHARED: {
    parse: parseBoolean,
    default: "true",
    doc:
      "Whether other processes may listen on the same ports, which a restart without a pause needs. `false` refuses to " +
      "start on a port in use.",
    group: "Process",
  },
  ALLOW_UNSAFE_DENO: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` starts on a Deno release that is known to end the process while it serves.",
    group: "Process",
  },
  HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Interface of the HTTP port: a name, an IPv4 or an IPv6 address.",
    group: "HTTP and debug ports",
  },
  PORT: {
    parse: parsePort,
    default: "8080",
    doc: "The HTTP port; 0 takes a free one.",
    group: "HTTP and debug ports",
  },
  HTTP_MAX_CONNECTIONS: {
    parse: integer({ min: 0, max: 1_000_000 }),
    default: "0",
    doc:
      "As `GRPC_MAX_CONNECTIONS`, for the HTTP port and for `TRIGGER_ADDR`, each by itself; a further connection " +
      "takes the place of one that is between two requests.",
    group: "HTTP and debug ports",
  },
  HTTP_JSON: {
    parse: parseBoolean,
    default: "true",
    doc: "`false` turns off `POST /json` on the HTTP port.",
    group: "HTTP and debug ports",
  },
  HTTP_SERVER_USE_TLS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` serves HTTPS on the HTTP port, with `HTTP_SERVER_TLS_CERT` and `HTTP_SERVER_TLS_KEY`.",
    group: "HTTP and debug ports",
  },
  HTTP_SERVER_TLS_CERT: {
    parse: parsePath,
    doc: "PEM file with the certificate chain of the HTTP port, taken up again when it changes.",
    group: "HTTP and debug ports",
  },
  HTTP_SERVER_TLS_KEY: {
    parse: parsePath,
    doc: "PEM file with the private key of the HTTP port, taken up again when it changes.",
    group: "HTTP and debug ports",
  },
  DEBUG_HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Interface of the debug port.",
    group: "HTTP and debug ports",
  },
  DEBUG_PORT: {
    parse: parsePort,
    default: "6070",
    doc: "The debug port; 0 takes a free one.",
    group: "HTTP and debug ports",
  },
  DEBUG_TOKEN: {
    parse: parseBearerToken,
    whenUnset: "no token is asked for",
    doc:
      "Bearer token that the debug port wants for everything but its list of paths and its health; visible ASCII without a space.",
    group: "HTTP and debug ports",
    secret: true,
  },
  DEBUG_ALLOWED_HOSTS: {
    parse: listOf(parseHost),
    default: "",
    doc: "Further names by which the debug port may be addressed, by comma, such as those of a proxy. " +
      "Loopback names, IP addresses and `DEBUG_HOST` always may.",
    group: "HTTP and debug ports",
  },
  GRPC_HOST: {
    parse: parseHost,
    default: "0.0.0.0",
    doc: "Interface of the gRPC port: a name, an IPv4 or an IPv6 address.",
    group: "gRPC",
  },
  GRPC_PORT: {
    parse: parsePort,
    default: "8081",
    doc: "The gRPC port; 0 takes a free one.",
    group: "gRPC",
  },
  GRPC_MAX_CONNECTIONS: {
    parse: integer({ min: 0, max: 1_000_000 }),
    default: "0",
    doc:
      "Open gRPC connections beyond which further ones are closed; 0 sets no limit until file descriptors run " +
      "out, and then for a minute seven eighths of those that were open.",
    group: "gRPC",
  },
  GRPC_UDS: {
    parse: parsePath,
    whenUnset: "TCP is used",
    doc: "Path of a unix socket on which gRPC is served in place of the TCP port.",
    group: "gRPC",
  },
  GRPC_UDS_MODE: {
    parse: parseFileMode,
    whenUnset: "as the process's umask leaves it",
    doc: "Permissions of the gRPC unix socket in octal, such as `0660`.",
    group: "gRPC",
  },
  GRPC_MAX_CONNECTION_AGE: {
    parse: duration(),
    default: "24h",
    doc:
      "Duration, spread by 10 % either way, after which a gRPC connection is told to go away; 0 means never.",
    group: "gRPC",
  },
  GRPC_MAX_CONNECTION_AGE_GRACE: {
    parse: duration(),
    default: "1h",
    doc: "Duration that a gRPC connection which was told to go away may still live; then it is cut.",
    group: "gRPC",
  },
  GRPC_ENGINE: {
    parse: oneOf(["grpc-js", "native"]),
    default: "native",
    doc: "What carries gRPC: Weir's own HTTP/2, `native`, or the library `grpc-js`.",
    group: "gRPC",
  },
  GRPC_SERVER_USE_TLS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` serves gRPC over TLS 1.2 or 1.3; wants `GRPC_SERVER_TLS_CERT` and `GRPC_SERVER_TLS_KEY`.",
    group: "gRPC",
  },
  GRPC_SERVER_TLS_CERT: {
    parse: parsePath,
    doc: "PEM file with the certificate chain of the gRPC port, taken up again when it changes.",
    group: "gRPC",
  },
  GRPC_SERVER_TLS_KEY: {
    parse: parsePath,
    doc: "PEM file with the private key of the gRPC port, taken up again when it changes.",
    group: "gRPC",
  },
  GRPC_CLIENT_TLS_CACERT: {
    parse: parsePath,
    whenUnset: "client certificates are not asked for",
    doc:
      "PEM file of the authority whose client certificates gRPC then demands; wants `GRPC_SERVER_USE_TLS`.",
    group: "gRPC",
  },
  GRPC_CLIENT_TLS_SAN: {
    parse: parseText,
    whenUnset: "any name",
    doc: "DNS name that a client certificate must be for; wants `GRPC_CLIENT_TLS_CACERT`.",
    group: "gRPC",
  },
} as const satisfies SettingTable;
