import { hostPort } from "./host_port.ts";

/** One server of the database. */
export interface PostgresHost {
  /** A name, an IP address, or the folder of a unix socket. */
  readonly host: string;
  readonly port: number;
}

/** Encryption and verification of the server, as in libpq. */
export type SslMode = "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full";

/** An address without its password. */
export interface PostgresAddressFields {
  readonly hosts: readonly PostgresHost[];
  readonly user: string;
  readonly database: string;
  readonly sslMode: SslMode;
  /** File of trusted authorities, or `system` for those of the system. */
  readonly rootCertFile: string | undefined;
  /** Client certificate and its key. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly connectTimeoutMs: number | undefined;
  readonly applicationName: string;
  /** Session settings in the syntax of the server's command line. */
  readonly options: string | undefined;
  /** True to use only a server that accepts writes. */
  readonly mustTakeWrites: boolean;
}

/** The address and the login of a database. Printing it never shows the password. */
export class PostgresAddress {
  readonly fields: PostgresAddressFields;
  readonly #password: string | undefined;

  constructor(fields: PostgresAddressFields, password: string | undefined) {
    this.fields = fields;
    this.#password = password;
  }

  password(): string | undefined {
    return this.#password;
  }

  toString(): string {
    return redactedAddress(this);
  }
}

const SCHEME = /^postgres(?:ql)?:\/\//;
const DEFAULT_PORT = "5432";
const DEFAULT_NAME = "weir";
const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
const SESSION_ATTRS = ["any", "read-write"] as const;
const MAX_CONNECT_TIMEOUT_S = 3_600;
const FILE_PARAMETERS = ["sslrootcert", "sslcert", "sslkey"] as const;
const PARAMETERS = [
  ...["host", "port", "dbname", "user", "password", "sslmode", ...FILE_PARAMETERS],
  ...["connect_timeout", "application_name", "target_session_attrs", "options"],
] as const;

type ParameterName = typeof PARAMETERS[number];
type Parameters = ReadonlyMap<ParameterName, string>;

/** True when a text has the scheme of PostgreSQL, valid or not. */
export function isPostgresAddress(text: string): boolean {
  return SCHEME.test(text);
}

/** The address without password and parameters. */
export function redactedAddress({ fields }: PostgresAddress): string {
  const hosts = fields.hosts.map(({ host, port }) =>
    hostPort({ host: isSocketFolder(host) ? encodeURIComponent(host) : host, port })
  );
  return `postgres://${encodeURIComponent(fields.user)}@${hosts.join(",")}/${
    encodeURIComponent(fields.database)
  }`;
}

/** True when a host is the folder of a unix socket. */
export function isSocketFolder(host: string): boolean {
  return host.startsWith("/");
}

/**
 * Parses an address such as `postgres://user:password@one:5432,two:5432/database?sslmode=verify-full`. Errors never
 * quote the address: a part at the wrong place may be the password.
 */
export function parsePostgresAddress(text: string): PostgresAddress {
  const parts = /^postgres(?:ql)?:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(text);
  if (parts === null) throw wrong("expected postgres:// at the beginning");
  const [, authority = "", path = "", query = ""] = parts;
  const [userInfo, places] = splitAuthority(authority);
  // Another `@` suggests that the text after it still belongs to the password.
  const isSure = text.indexOf("@") === text.lastIndexOf("@") && (userInfo !== "" || authority === "");
  const parameters = parseParameters(query, isSure);
  const colon = userInfo.indexOf(":");
  const user = parameters.get("user") ?? decoded(colon === -1 ? userInfo : userInfo.slice(0, colon), "user");
  if (user === "") throw wrong("expected a user, as in postgres://user:password@host/database");
  const password = parameters.get("password") ??
    (colon === -1 ? undefined : decoded(userInfo.slice(colon + 1), "password"));
  const database = parameters.get("dbname") ?? (decoded(path, "database") || user);
  const hosts = parseHosts(places, parameters);
  const fields = { hosts, user, database, ...tlsFields(parameters, hosts), ...sessionFields(parameters) };
  return new PostgresAddress(fields, password === "" ? undefined : password);
}

function splitAuthority(authority: string): readonly [userInfo: string, places: string] {
  const at = authority.indexOf("@");
  if (at !== authority.lastIndexOf("@")) {
    throw wrong("expected one @; write an @ in a password as %40");
  }
  return [at === -1 ? "" : authority.slice(0, at), authority.slice(at + 1)];
}

function parseParameters(query: string, isSure: boolean): Parameters {
  const parameters = new Map<ParameterName, string>();
  for (const pair of query.split("&").filter((text) => text !== "")) {
    const equals = pair.indexOf("=");
    const given = equals === -1 ? pair : pair.slice(0, equals);
    const name = PARAMETERS.find((known) => known === given);
    if (name === undefined) {
      const shown = isSure && /^[a-z_]{1,40}$/.test(given) ? ` "${given}"` : "";
      throw wrong(`its parameter${shown} is none of ${PARAMETERS.join(", ")}`);
    }
    if (parameters.has(name)) throw wrong(`it has the parameter "${name}" twice`);
    const value = decoded(pair.slice(equals + 1), name);
    if (equals === -1 || value === "") throw wrong(`its parameter "${name}" has no value`);
    parameters.set(name, value);
  }
  return parameters;
}

function parseHosts(places: string, parameters: Parameters): readonly PostgresHost[] {
  const named = places === "" ? [] : places.split(",").map(parsePlace);
  const hosts = parameters.get("host")?.split(",") ?? named.map(({ host }) => host);
  const ports = parameters.get("port")?.split(",") ??
    (parameters.has("host") && named.length === 0 ? [DEFAULT_PORT] : named.map(({ port }) => port));
  if (hosts.length === 0 || hosts.includes("")) throw wrong("it names no host");
  if (hosts.some((host) => /[\s@]/.test(host))) throw wrong("its host has an invalid character");
  // As in libpq, one port may apply to all hosts.
  if (ports.length !== 1 && ports.length !== hosts.length) {
    throw wrong(`it has ${hosts.length} hosts and ${ports.length} ports`);
  }
  return hosts.map((host, index) => ({ host, port: parsePort(ports[index] ?? ports[0] ?? DEFAULT_PORT) }));
}

function parsePlace(place: string): { readonly host: string; readonly port: string } {
  const parts = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(place);
  if (parts === null) throw wrong("its host cannot be read; put an IPv6 address in brackets");
  return { host: parts[1] ?? decoded(parts[2] ?? "", "host"), port: parts[3] || DEFAULT_PORT };
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) {
    throw wrong("expected a port from 1 to 65535 (write a / or ? in a password as %2F or %3F)");
  }
  return port;
}

function tlsFields(
  parameters: Parameters,
  hosts: readonly PostgresHost[],
): Pick<PostgresAddressFields, "sslMode" | "rootCertFile" | "certFile" | "keyFile"> {
  const sslMode = oneOf(parameters, "sslmode", SSL_MODES) ?? "prefer";
  const [rootCertFile, certFile, keyFile] = FILE_PARAMETERS.map((name) => parameters.get(name));
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw wrong("sslcert and sslkey require each other");
  }
  const fileName = FILE_PARAMETERS.find((name) => parameters.has(name));
  if (sslMode === "disable" && fileName !== undefined) throw wrong(`sslmode=disable excludes ${fileName}`);
  if (sslMode.startsWith("verify") && rootCertFile === undefined) {
    throw wrong(`sslmode=${sslMode} requires sslrootcert, the file of an authority or "system"`);
  }
  if (rootCertFile === "system" && sslMode !== "verify-full") {
    throw wrong(
      "sslrootcert=system requires sslmode=verify-full, because those authorities issue certificates to everyone",
    );
  }
  const tlsName = fileName ?? (parameters.has("sslmode") && sslMode !== "disable" ? "sslmode" : undefined);
  if (tlsName !== undefined && hosts.every(({ host }) => isSocketFolder(host))) {
    throw wrong(`${tlsName} has no effect on a unix socket`);
  }
  return { sslMode, rootCertFile, certFile, keyFile };
}

function sessionFields(
  parameters: Parameters,
): Pick<PostgresAddressFields, "connectTimeoutMs" | "applicationName" | "options" | "mustTakeWrites"> {
  const timeout = parameters.get("connect_timeout");
  const seconds = Number(timeout ?? 1);
  if (timeout !== undefined && !/^\d{1,4}$/.test(timeout) || seconds < 1 || seconds > MAX_CONNECT_TIMEOUT_S) {
    throw wrong(`expected a connect_timeout from 1 to ${MAX_CONNECT_TIMEOUT_S} seconds`);
  }
  return {
    connectTimeoutMs: timeout === undefined ? undefined : seconds * 1_000,
    applicationName: parameters.get("application_name") ?? DEFAULT_NAME,
    options: parameters.get("options"),
    mustTakeWrites: oneOf(parameters, "target_session_attrs", SESSION_ATTRS) !== "any",
  };
}

function oneOf<T extends string>(
  parameters: Parameters,
  name: ParameterName,
  values: readonly T[],
): T | undefined {
  const given = parameters.get(name);
  const value = values.find((known) => known === given);
  if (given !== undefined && value === undefined) throw wrong(`its ${name} is none of ${values.join(", ")}`);
  return value;
}

function decoded(text: string, part: string): string {
  let value: string;
  try {
    value = decodeURIComponent(text);
  } catch {
    throw wrong(`its ${part} has an invalid percent-encoding (write a % as %25)`);
  }
  if (value.includes("\0")) throw wrong(`its ${part} has the character U+0000`);
  return value;
}

function wrong(state: string): RangeError {
  return new RangeError(`Cannot use the address of PostgreSQL: ${state}`);
}
