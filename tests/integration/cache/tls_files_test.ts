import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { join } from "node:path";
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
    assertEquals([first.ca?.slice(-2), (first.ca ?? []).length > 50], [own, true]);
    assertEquals(first.cert?.toString(), await text(client.certFile));
    await certificates.issue("client");
    const second = await readTlsFiles(files);
    assertEquals(second.key?.toString(), await text(client.keyFile));
    assertEquals(second.key?.equals(first.key ?? new Uint8Array()), false);
  },
});

Deno.test({
  ...needs(["openssl"], "tls files: one that cannot be used is named with its setting"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, authority, client, otherClient } = certificates;
    const garbage = join(folder, "garbage.pem");
    await Deno.writeTextFile(garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    const noPem = "it holds no certificate in PEM that can be read";
    const cases = [
      [{ authorityFile: garbage }, `Cannot use KV_TLS_CACERT "${garbage}": ${noPem}`],
      [{ authorityFile: client.keyFile }, `Cannot use KV_TLS_CACERT "${client.keyFile}": ${noPem}`],
      [
        { certFile: garbage, keyFile: client.keyFile },
        `Cannot use KV_TLS_CLIENT_CERT "${garbage}": it or its key is no PEM that can be read`,
      ],
      [
        { certFile: client.certFile, keyFile: authority.certFile },
        `Cannot use KV_TLS_CLIENT_CERT "${client.certFile}": it or its key is no PEM that can be read`,
      ],
      [
        { certFile: client.certFile, keyFile: otherClient.keyFile },
        `Cannot use KV_TLS_CLIENT_CERT "${client.certFile}": KV_TLS_CLIENT_KEY is not its key`,
      ],
    ] as const;
    for (const [files, message] of cases) {
      const error = await assertRejects(() => readTlsFiles({ settings: "KV_TLS", ...files }));
      assertEquals(error.message, message);
    }
  },
});

Deno.test({
  ...needs(["openssl"], "tls files: whoever comes while they are being read waits for that"),
  async fn() {
    await using certificates = await makeCertificates();
    const pipe = join(certificates.folder, "pipe.pem");
    await new Deno.Command("mkfifo", { args: [pipe] }).output();
    const text = await Deno.readTextFile(certificates.authority.certFile);
    // A reader of its own for each would get nothing: what is written into a pipe comes out once.
    for (let round = 0; round < 2; round++) {
      const all = Promise.allSettled(
        [1, 2, 3].map(() => readTlsFiles({ settings: "MC_TLS", authorityFile: pipe })),
      );
      await Deno.writeTextFile(pipe, text);
      const last = (await all).map((one) => one.status === "fulfilled" ? one.value.ca?.at(-1) : one.reason);
      assertEquals(last, Array(3).fill(text.trim()));
    }
  },
});

Deno.test({
  ...needs(["openssl"], "tls files: one that is not there is named with its setting"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, client: { certFile } } = certificates;
    const unread = { settings: "MC_TLS", certFile, keyFile: join(folder, "missing.pem") } as const;
    assertMatch(
      (await assertRejects(() => readTlsFiles(unread))).message,
      /^Cannot use MC_TLS_CLIENT_KEY ".*missing\.pem": .*(?:ENOENT|no such file)/i,
    );
  },
});
