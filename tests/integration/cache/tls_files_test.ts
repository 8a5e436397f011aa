import { assertEquals } from "#assert";
import { join } from "node:path";
import tls from "node:tls";
import { readTlsFiles } from "../../../src/cache/tls_files.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { needs } from "../../harness/tools.ts";

Deno.test("tls files: without any, the other end is verified all the same", async () => {
  const plain = { rejectUnauthorized: true, minVersion: "TLSv1.2" } as const;
  assertEquals(await readTlsFiles({ settings: "KV_TLS" }), plain);
  const { checkServerIdentity, ...rest } = await readTlsFiles({ settings: "KV_TLS", skipHostname: true });
  assertEquals([rest, checkServerIdentity?.()], [plain, undefined]);
});

Deno.test({
  ...needs(["openssl"], "tls files: what they hold, as they are at that moment"),
  async fn() {
    await using certificates = await makeCertificates();
    const { authority, otherAuthority, client } = certificates;
    const both = join(certificates.folder, "both.pem");
    const text = (path: string) => Deno.readTextFile(path);
    await Deno.writeTextFile(
      both,
      `# two\n${await text(authority.certFile)}${await text(otherAuthority.certFile)}`,
    );
    const files = { settings: "KV_TLS", authorityFile: both, ...client } as const;
    const first = await readTlsFiles(files);
    const own = [await text(authority.certFile), await text(otherAuthority.certFile)].map((one) =>
      one.trim()
    );
    const system = [...tls.getCACertificates("default"), ...tls.getCACertificates("system")];
    assertEquals(first.ca, [...new Set(system), ...own]);
    assertEquals(first.cert?.toString(), await text(client.certFile));
    await certificates.issue("client");
    const second = await readTlsFiles(files);
    assertEquals(second.key?.toString(), await text(client.keyFile));
    assertEquals(second.key === first.key, false);
  },
});
