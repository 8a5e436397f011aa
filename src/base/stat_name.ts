const SEPARATORS = /[:|\p{Cc}]/gu;
const IPV4_ADDRESS = /\d{1,3}(?:\.\d{1,3}){3}/g;

/** A metric key as it is printed: `_` for separators, control characters and the dots of IPv4 addresses. */
export function sanitizeStatName(name: string): string {
  return name.replace(SEPARATORS, "_").replace(IPV4_ADDRESS, (address) => address.replaceAll(".", "_"));
}
