/** `host:port`, with brackets around an IPv6 address. */
export function hostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
