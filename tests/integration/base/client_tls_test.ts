import { assertEquals, assertMatch, assertRejects } from "#assert";
import { join } from "node:path";
import { type ClientTlsFiles, readClientTls } from "../../../src/net/client_tls.ts";
import { errorText } from "../../../src/base/error_text.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { needs } from "../../harness/tools.ts";

const NAMES = { cert: "CLIENT_CERT", key: "CLIENT_KEY", ca: "CACERT" };

type Files = Required<ClientTlsFiles>;

const half = async (path: string) => {
  const text = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, text.slice(0, text.length / 2));
};
const folderAt = async (path: string) => {
  await Deno.remove(path);
  await Deno.mkdir(path);
};

/** Changes of the files, and the reason in the log. */
const CASES: Readonly<
  Record<string, readonly [change: (files: Files, all: Certificates) => Promise<void>, reason: RegExp]>
> = {
  "a certificate that is missing": [
    ({ cert = "" }) => Deno.remove(cert),
    /^Cannot use CLIENT_CERT ".*": .*no such file/i,
  ],
  "a key that is missing": [
    ({ key = "" }) => Deno.remove(key),
    /^Cannot use CLIENT_KEY ".*": .*no such file/i,
  ],
  "authorities that are missing": [
    ({ ca = "" }) => Deno.remove(ca),
    /^Cannot use CACERT ".*": .*no such file/i,
  ],
  "a certificate that is truncated": [
    ({ cert = "" }) => half(cert),
    /^Cannot use CLIENT_CERT .*it holds no certificate/,
  ],
  "a key that is truncated": [({ key = "" }) => half(key), /^Cannot use CLIENT_KEY .*its key cannot be read/],
  "authorities that are truncated": [
    ({ ca = "" }) => half(ca),
    /^Cannot use CACERT .*it holds no certificate/,
  ],
  "authorities of which the last one is truncated": [
    async ({ ca = "" }) => {
      const text = await Deno.readTextFile(ca);
      await Deno.writeTextFile(ca, text + text.slice(0, text.length / 2));
    },
    /^Cannot use CACERT .*one of its certificates is incomplete/,
  ],
  "a certificate that is empty": [
    ({ cert = "" }) => Deno.writeTextFile(cert, ""),
    /^Cannot use CLIENT_CERT .*it holds no certificate/,
  ],
  "a folder in the place of the key": [
    ({ key = "" }) => folderAt(key),
    /^Cannot use CLIENT_KEY .*it is no file/,
  ],
  "the key of another certificate": [
    ({ key = "" }, { otherClient }) => Deno.copyFile(otherClient.keyFile, key),
    /^Cannot use CLIENT_KEY .*it is not the key of the first certificate/,
  ],
};

async function usedFiles(certificates: Certificates): Promise<Files> {
  const { folder, client, authority } = certificates;
  const files = { cert: join(folder, "used.pem"), key: join(folder, "used.key"), ca: join(folder, "ca.pem") };
  await use(files, { ...client, caFile: authority.certFile });
  return files;
}

async function use(
  { cert = "", key = "", ca = "" }: ClientTlsFiles,
  from: { readonly certFile: string; readonly keyFile: string; readonly caFile: string },
): Promise<void> {
  for (const path of [cert, key, ca]) await Deno.remove(path, { recursive: true }).catch(() => {});
  await Deno.copyFile(from.certFile, cert);
  await Deno.copyFile(from.keyFile, key);
  await Deno.copyFile(from.caFile, ca);
}

for (const [name, [change, reason]] of Object.entries(CASES)) {
  Deno.test({
    ...needs(
      ["openssl"],
      `files of a TLS client: ${name}: an error at first; later the last good content stays`,
    ),
    async fn() {
      await using certificates = await makeCertificates();
      const files = await usedFiles(certificates);
      const logger = new RecordedLogger();
      const read = async () => {
        const { pair, authorities } = await readClientTls(files, NAMES, logger);
        return [pair?.cert, pair?.key, authorities?.join()];
      };
      const setting = name.startsWith("authorities") ? "CACERT" : "CLIENT_CERT";
      const good = await read();
      await change(files, certificates);
      assertEquals([await read(), await read()], [good, good]);
      const [line, ...others] = logger.lines;
      assertEquals([line?.level, line?.message, line?.fields["setting"], others], [
        ...["warning", "TLS files cannot be used; keeping their last good content", setting],
        [],
      ]);
      assertMatch(String(line?.fields["reason"]), reason);
      // Under other names there is no content before.
      const copies = { cert: `${files.cert}.2`, key: `${files.key}.2`, ca: `${files.ca}.2` };
      for (const part of ["cert", "key", "ca"] as const) {
        await Deno.rename(files[part] ?? "", copies[part]).catch(() => {});
      }
      const first = new RecordedLogger();
      assertMatch(errorText(await assertRejects(() => readClientTls(copies, NAMES, first))), reason);
      assertEquals(first.lines, []);

      const { otherClient, otherAuthority } = certificates;
      await use(files, { ...otherClient, caFile: otherAuthority.certFile });
      const texts = [otherClient.certFile, otherClient.keyFile, otherAuthority.certFile].map(
        Deno.readTextFileSync,
      );
      assertEquals((await read()).map((text) => text?.trim()), texts.map((text) => text.trim()));
      assertEquals(logger.lines.slice(1), [
        { level: "warning", message: "TLS files can be used again", fields: { setting } },
      ]);
    },
  });
}

Deno.test({
  ...needs(["openssl"], "files of a TLS client: concurrent callers share one read"),
  async fn() {
    await using certificates = await makeCertificates();
    const files = await usedFiles(certificates);
    const read = async () => (await readClientTls(files, NAMES)).authorities;
    const [first, second] = await Promise.all([read(), read()]);
    const later = await read();
    assertEquals([first === second, later === first, later], [true, false, first]);
  },
});
