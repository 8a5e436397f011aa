const SEPARATORS = /[:|\p{Cc}]/gu;
const IPV4_ADDRESS = /\d{1,3}(?:\.\d{1,3}){3}/g;

/**
 * A metric key as it is printed: `:` and `|`, which separate parts of a statistics line, and control
 * characters become `_`, and so do the dots of anything shaped like an IPv4 address.
 */
export function sanitizeStatName(name: string): string {
  return name.replace(SEPARATORS, "_").replace(IPV4_ADDRESS, (address) => address.replaceAll(".", "_"));
}
