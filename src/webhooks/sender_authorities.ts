import { readFileSync, statSync } from "node:fs";
import { errorText } from "../base/error_text.ts";
import { parseCertificates } from "../base/pem.ts";

/** Certificates are small; whatever is larger than this is something else. */
const MAX_BYTES = 1024 * 1024;

/** The authorities of `WEBHOOK_CA_FILE`, each as a text in PEM; throws an error that names the setting and the file. */
export function readAuthorities(path: string): readonly string[] {
  try {
    const found = statSync(path);
    if (!found.isFile()) throw new Error("it is no file");
    if (found.size > MAX_BYTES) throw new Error("it has more than 1 MiB");
    return parseCertificates(readFileSync(path, "utf8")).map(({ pem }) => pem);
  } catch (error) {
    const state = error instanceof Error && "code" in error ? String(error.code) : errorText(error);
    throw new Error(`Cannot use WEBHOOK_CA_FILE "${path}": ${state}`);
  }
}
