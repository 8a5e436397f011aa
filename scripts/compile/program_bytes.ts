import { Buffer } from "node:buffer";

/** The description begins the embedded part; Deno itself is before it. */
const DESCRIPTION = '{"argv":[';

/** Those of the files whose bytes are not in a program. */
export function missingFiles(program: Uint8Array<ArrayBuffer>, files: readonly string[]): string[] {
  const embedded = embeddedIn(program);
  // Files stand there nearly in their order, so the next one is looked for behind the one before it.
  let from = 0;
  return files.filter((file) => {
    const wanted = Deno.readFileSync(file);
    const behind = embedded.indexOf(wanted, from);
    const at = behind < 0 ? embedded.indexOf(wanted) : behind;
    if (at >= 0) from = at;
    return at < 0;
  });
}

/** Those of the texts that are in what is embedded in a program. */
export function textsIn(program: Uint8Array<ArrayBuffer>, texts: readonly string[]): string[] {
  const embedded = embeddedIn(program);
  return texts.filter((text) => embedded.includes(text));
}

function embeddedIn(program: Uint8Array<ArrayBuffer>): Buffer {
  const bytes = Buffer.from(program.buffer, program.byteOffset, program.byteLength);
  return bytes.subarray(Math.max(0, bytes.lastIndexOf(DESCRIPTION)));
}
