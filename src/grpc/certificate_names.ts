/** The tags of DER that matter here. */
const SEQUENCE = 0x30;
const OBJECT_IDENTIFIER = 0x06;
const BOOLEAN = 0x01;
const OCTET_STRING = 0x04;
const EXTENSIONS = 0xa3;
const DNS_NAME = 0x82;
/** 2.5.29.17, the alternative names of the subject. */
const SUBJECT_ALT_NAME = "551d11";

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
}

/**
 * The DNS names among the alternative names of a certificate in DER; throws when it is none. The runtime
 * only has them as one text, in which a name of another kind may look like a DNS name.
 */
export function dnsNamesOf(der: Uint8Array): string[] {
  const [certificate] = elementsOf(der);
  const [signed] = elementsOf(contentOf(certificate, SEQUENCE));
  const wrapped = elementsOf(contentOf(signed, SEQUENCE)).find(({ tag }) => tag === EXTENSIONS);
  if (wrapped === undefined) return [];
  const [extensions] = elementsOf(wrapped.content);
  for (const extension of elementsOf(contentOf(extensions, SEQUENCE))) {
    const [name, ...parts] = elementsOf(contentOf(extension, SEQUENCE));
    if (contentOf(name, OBJECT_IDENTIFIER).toHex() !== SUBJECT_ALT_NAME) continue;
    const value = parts[0]?.tag === BOOLEAN ? parts[1] : parts[0];
    const [names] = elementsOf(contentOf(value, OCTET_STRING));
    return elementsOf(contentOf(names, SEQUENCE)).filter(({ tag }) => tag === DNS_NAME)
      .map(({ content }) => String.fromCharCode(...content));
  }
  return [];
}

/** Whether a name of a certificate stands for a DNS name; a `*` stands for one whole first label. */
export function coversName(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.toLowerCase().split(".");
  const [label = "", ...domain] = name.toLowerCase().replace(/\.$/, "").split(".");
  if (rest.join(".") !== domain.join(".") || label === "") return false;
  return first === label || (first === "*" && domain.length > 0);
}

function contentOf(element: Element | undefined, tag: number): Uint8Array {
  if (element?.tag !== tag) throw malformed();
  return element.content;
}

function elementsOf(bytes: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const [tag, { start, end }] = [bytes[at] ?? 0, extentOf(bytes, at + 1)];
    if (end > bytes.length) throw malformed();
    elements.push({ tag, content: bytes.subarray(start, end) });
    at = end;
  }
  return elements;
}

/** Where the content begins and ends whose length stands at `at`. */
function extentOf(bytes: Uint8Array, at: number): { readonly start: number; readonly end: number } {
  const first = bytes[at];
  if (first === undefined || first === 0x80 || first > 0x83) throw malformed();
  if (first < 0x80) return { start: at + 1, end: at + 1 + first };
  const start = at + 1 + (first & 0x7f);
  let length = 0;
  for (let index = at + 1; index < start; index++) length = length * 256 + (bytes[index] ?? 0);
  return { start, end: start + length };
}

function malformed(): Error {
  return new Error("Cannot read a certificate: it is no DER as X.509 has it");
}
