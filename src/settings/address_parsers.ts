import type { Parsed, Parser } from "./setting.ts";

const MAX_PORT = 65_535;
const MAX_HOST_LENGTH = 253;
const HOST_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_.])?$/;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;
const LOOKS_LIKE_IPV4 = /(?:^|\.)\d+\.?$/;
const SRV_NAME = /^_[A-Za-z0-9-]+\._[A-Za-z0-9-]+\.[A-Za-z0-9_.-]+$/;

/** A host name or literal address without brackets, and a port. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Takes a host name, an IPv4 or an IPv6 address; brackets around the last are taken off. */
export function parseHost(text: string): Parsed<string> {
  const inner = /^\[(.*)\]$/.exec(text)?.[1];
  const host = inner ?? text;
  const good = inner === undefined && (isHostName(host) || isIpv4(host)) || isIpv6(host);
  return good ? { value: host } : { expected: "a host name or an IP address" };
}

/** Reads the port of a listener; 0 takes a free one. */
export function parsePort(text: string): Parsed<number> {
  const port = portNumber(text, 0);
  return port === undefined ? { expected: `an integer from 0 to ${MAX_PORT}` } : { value: port };
}

/** Reads `host:port` or `[IPv6]:port` of a server to connect to. */
export const dialAddress: Parser<Address> = (text) => {
  const parsed = parseAddress(text, 1);
  return parsed === undefined ? { expected: "host:port or [IPv6 address]:port" } : { value: parsed };
};

/** Reads the address of a listener: as `dialAddress`, and `:port` for every interface. */
export const listenAddress: Parser<Address> = (text) => {
  const parsed = parseAddress(text.startsWith(":") ? `0.0.0.0${text}` : text, 0);
  return parsed === undefined ? { expected: "host:port, [IPv6 address]:port or :port" } : { value: parsed };
};

/** Takes what a gRPC client may dial: `host:port`, `dns:///host:port` or `unix:path`. */
export function parseDialTarget(text: string): Parsed<string> {
  if (/^unix:.+/.test(text)) return { value: text };
  const bare = text.replace(/^dns:(?:\/\/[^/]*\/)?/, "");
  return "value" in dialAddress(bare)
    ? { value: text }
    : { expected: "host:port, dns:///host:port or unix:path" };
}

/** Takes the name of an SRV record. */
export function parseSrvName(text: string): Parsed<string> {
  return SRV_NAME.test(text) ? { value: text } : { expected: "an SRV name such as _mc._tcp.example.com" };
}

/** Takes a range of addresses such as `10.0.0.0/8` or `fd00::/8`. */
export function parseCidr(text: string): Parsed<string> {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const maxBits = isIpv4(address) ? 32 : isIpv6(address) ? 128 : -1;
  return bits !== "" && Number(bits) <= maxBits
    ? { value: text }
    : { expected: "an address range such as 10.0.0.0/8 or fd00::/8" };
}

/** Takes the path of a URL. */
export function parseUrlPath(text: string): Parsed<string> {
  return /^\/[^\s?#]*$/.test(text) ? { value: text } : { expected: "a path that starts with /" };
}

/** Takes a whole URL of the scheme http or https. */
export function parseHttpUrl(text: string): Parsed<string> {
  const good = /^https?:\/\/[^/]/i.test(text) && URL.canParse(text);
  return good ? { value: text } : { expected: "a URL that starts with http:// or https://" };
}

/** Takes a URL that others call, without user, query and fragment; a slash at its end is removed. */
export function parsePublicUrl(text: string): Parsed<string> {
  const url = "value" in parseHttpUrl(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && `${url.username}${url.password}` === "" && !/[?#\s]/.test(text);
  if (!isPlain) return { expected: "a URL that starts with http:// or https://, without user and query" };
  return { value: text.replace(/\/+$/, "") };
}

/** Takes the URL of a proxy; its scheme is http. */
export function parseProxyUrl(text: string): Parsed<string> {
  return /^http:/i.test(text) && "value" in parseHttpUrl(text)
    ? { value: text }
    : { expected: "a URL that starts with http://" };
}

function parseAddress(text: string, minPort: number): Address | undefined {
  const [, hostText = "", portText = ""] = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(text) ?? [];
  const host = parseHost(hostText);
  const port = portNumber(portText, minPort);
  return "value" in host && port !== undefined ? { host: host.value, port } : undefined;
}

function portNumber(text: string, min: number): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  return port >= min && port <= MAX_PORT ? port : undefined;
}

function isHostName(text: string): boolean {
  return text.length <= MAX_HOST_LENGTH && HOST_NAME.test(text) && !text.includes("..") &&
    !LOOKS_LIKE_IPV4.test(text);
}

function isIpv4(text: string): boolean {
  return IPV4.test(text);
}

function isIpv6(text: string): boolean {
  return /^[0-9A-Fa-f:.]+$/.test(text) && text.includes(":") && URL.canParse(`http://[${text}]/`);
}
