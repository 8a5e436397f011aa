/** A host name or an address, without brackets, and a port. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, with brackets around an IPv6 address. */
export function hostPort({ host, port }: HostAndPort): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The address of a server: a host and port, or the path of a unix socket. */
export type DialAddress = HostAndPort | { readonly path: string };

/** The parts of `host:port`, `[IPv6]:port`, `dns:///host:port` or `unix:path`; the text must be one of them. */
export function dialAddressOf(text: string): DialAddress {
  const path = /^unix:(?:\/\/(?=\/))?(.+)$/s.exec(text)?.[1];
  if (path !== undefined) return { path };
  const [, host = "", port = ""] = /^(?:dns:(?:\/\/[^/]*\/)?)?\[?(.*?)\]?:(\d+)$/s.exec(text) ?? [];
  return { host, port: Number(port) };
}
