import { assertEquals, assertRejects } from "#assert";
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

Deno.test({
  ...needs(["openssl"], "tls files: one that cannot be used is named with its setting"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, authority, client, otherClient } = certificates;
    const garbage = join(folder, "garbage.pem");
    await Deno.writeTextFile(garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    const unreadable = "its certificate number 1 cannot be read; expected certificates in PEM";
    const noPem = "it holds no certificate in PEM; expected certificates in PEM";
    const noKey = "it holds no private key in PEM; expected a private key in PEM without a password";
    const otherKey = `it is not the key of the first certificate in KV_TLS_CLIENT_CERT "${client.certFile}"`;
    const cases = [
      [{ authorityFile: garbage }, `Cannot use KV_TLS_CACERT "${garbage}": ${unreadable}`],
      [{ authorityFile: client.keyFile }, `Cannot use KV_TLS_CACERT "${client.keyFile}": ${noPem}`],
      [
        { certFile: garbage, keyFile: client.keyFile },
        `Cannot use KV_TLS_CLIENT_CERT "${garbage}": ${unreadable}`,
      ],
      [
        { certFile: client.certFile, keyFile: authority.certFile },
        `Cannot use KV_TLS_CLIENT_KEY "${authority.certFile}": ${noKey}`,
      ],
      [
        { certFile: client.certFile, keyFile: otherClient.keyFile },
        `Cannot use KV_TLS_CLIENT_KEY "${otherClient.keyFile}": ${otherKey}; expected a certificate with its own key`,
      ],
    ] as const;
    for (const [files, message] of cases) {
      const error = await assertRejects(() => readTlsFiles({ settings: "KV_TLS", ...files }));
      assertEquals(error.message, message);
    }
  },
});
