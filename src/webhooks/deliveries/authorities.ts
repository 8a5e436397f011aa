import { errorText } from "../../base/error_text.ts";
import { parseCertificates, readPemSync } from "../../base/pem.ts";

/** The authorities of `WEBHOOK_CA_FILE`, each as a text in PEM; throws an error that names the setting and the file. */
export function readAuthorities(path: string): readonly string[] {
  try {
    return parseCertificates(readPemSync(path)).map(({ pem }) => pem);
  } catch (error) {
    const state = error instanceof Error && "code" in error ? String(error.code) : errorText(error);
    throw new Error(`Cannot use WEBHOOK_CA_FILE "${path}": ${state}`);
  }
}
