import { join } from "node:path";
import { ChildProcess } from "../../../harness/child_process.ts";
import { requireTool } from "../../../harness/tools.ts";

/** A certificate for this machine that nobody else knows, and its key. */
export async function tlsCertificate(): Promise<{ key: string; cert: string }> {
  const folder = await Deno.makeTempDir({ prefix: "weir_tls_" });
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const kind = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "1",
  ];
  const args = [...kind, "-subj", "/CN=localhost", "-keyout", key, "-out", cert];
  try {
    await using openssl = new ChildProcess(requireTool("openssl"), { args });
    const { code } = await openssl.exited;
    if (code !== 0) throw new Error(`Cannot make a certificate: ${openssl.stderrLines.join("\n")}`);
    return { key: await Deno.readTextFile(key), cert: await Deno.readTextFile(cert) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
