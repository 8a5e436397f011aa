/**
 * Texts of the Redis protocol, one character an octet: what is written by `write(text, "latin1")`.
 */

const encoder = new TextEncoder();

/** One argument: its length in octets and its octets. */
export function respKey(text: string): string {
  const octets = isAscii(text) ? text : octetsOf(text);
  return `$${octets.length}\r\n${octets}\r\n`;
}

/**
 * One command. Its name and its last argument are plain ASCII; the arguments between them are already
 * in the form of `respKey`.
 */
export function respCommand(name: string, ...args: readonly string[]): string {
  const last = args.at(-1) ?? "";
  return `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n${args.slice(0, -1).join("")}${respKey(last)}`;
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) > 127) return false;
  }
  return true;
}

function octetsOf(text: string): string {
  let octets = "";
  for (const octet of encoder.encode(text)) octets += String.fromCharCode(octet);
  return octets;
}

/** Longest text of a server that goes on to callers and logs, in characters. */
const LONGEST_TEXT = 200;

/** A text of a server, cut where it is too long to be told. */
export function shortened(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT)}…`;
}
