import { assertEquals, assertRejects } from "@std/assert";
import { join } from "node:path";
import { type ClientTlsFiles, readClientTls } from "../../../src/base/client_tls.ts";
import { errorText } from "../../../src/base/error_text.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { needs } from "../../harness/tools.ts";

const NAMES = { cert: "CLIENT_CERT", key: "CLIENT_KEY", ca: "CACERT" };

interface Case {
  /** What becomes of the files. */
  readonly change: (files: Required<ClientTlsFiles>, certificates: Certificates) => Promise<void>;
  /** The setting that the log names. */
  readonly setting: string;
  readonly reason: RegExp;
}

const half = async (path: string) => {
  const text = await Deno.readTextFile(path);
  await Deno.writeTextFile(path, text.slice(0, text.length / 2));
};
const folderAt = async (path: string) => {
  await Deno.remove(path);
  await Deno.mkdir(path);
};

const CASES: Readonly<Record<string, Case>> = {
  "a certificate that is missing": {
    change: ({ cert = "" }) => Deno.remove(cert),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_CERT ".*": .*no such file/i,
  },
  "a key that is missing": {
    change: ({ key = "" }) => Deno.remove(key),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_KEY ".*": .*no such file/i,
  },
  "authorities that are missing": {
    change: ({ ca = "" }) => Deno.remove(ca),
    setting: "CACERT",
    reason: /^Cannot use CACERT ".*": .*no such file/i,
  },
  "a certificate that is truncated": {
    change: ({ cert = "" }) => half(cert),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_CERT .*it holds no certificate/,
  },
  "a key that is truncated": {
    change: ({ key = "" }) => half(key),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_KEY .*its key cannot be read/,
  },
  "authorities that are truncated": {
    change: ({ ca = "" }) => half(ca),
    setting: "CACERT",
    reason: /^Cannot use CACERT .*it holds no certificate/,
  },
  "authorities of which the last one is truncated": {
    change: async ({ ca = "" }) => {
      const text = await Deno.readTextFile(ca);
      await Deno.writeTextFile(ca, text + text.slice(0, text.length / 2));
    },
    setting: "CACERT",
    reason: /^Cannot use CACERT .*one of its certificates is incomplete/,
  },
  "a certificate that is empty": {
    change: ({ cert = "" }) => Deno.writeTextFile(cert, ""),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_CERT .*it holds no certificate/,
  },
  "a folder in the place of the key": {
    change: ({ key = "" }) => folderAt(key),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_KEY .*it is no file/,
  },
  "the key of another certificate": {
    change: ({ key = "" }, { otherClient }) => Deno.copyFile(otherClient.keyFile, key),
    setting: "CLIENT_CERT",
    reason: /^Cannot use CLIENT_KEY .*it is not the key of the first certificate/,
  },
};

async function usedFiles(certificates: Certificates): Promise<Required<ClientTlsFiles>> {
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

for (const [name, { change, setting, reason }] of Object.entries(CASES)) {
  Deno.test({
    ...needs(
      ["openssl"],
      `files of a TLS client: ${name}: the last good content stays, and new content is used`,
    ),
    async fn() {
      await using certificates = await makeCertificates();
      const files = await usedFiles(certificates);
      const logger = new RecordedLogger();
      const read = async () => {
        const { pair, authorities } = await readClientTls(files, NAMES, logger);
        return [pair?.cert, pair?.key, authorities?.join()];
      };
      const first = await read();
      await change(files, certificates);
      assertEquals([await read(), await read()], [first, first]);
      const [[level, message, fields] = [], ...others] = logger.lines;
      assertEquals([level, message, fields?.["setting"], others], [
        ...["warning", "TLS files cannot be used; keeping their last good content", setting],
        [],
      ]);
      assertEquals(reason.test(String(fields?.["reason"])), true, String(fields?.["reason"]));

      const { otherClient, otherAuthority } = certificates;
      await use(files, { ...otherClient, caFile: otherAuthority.certFile });
      const [cert, key, ca] = await read();
      const texts = [otherClient.certFile, otherClient.keyFile, otherAuthority.certFile].map(
        Deno.readTextFileSync,
      );
      assertEquals([cert, key, ca].map((text) => text?.trim()), texts.map((text) => text.trim()));
      const again = ["warning", "TLS files can be used again", { setting }] as const;
      assertEquals(logger.lines.slice(1), [again]);
    },
  });

  Deno.test({
    ...needs(["openssl"], `files of a TLS client: ${name}, at the first read: an error`),
    async fn() {
      await using certificates = await makeCertificates();
      const files = await usedFiles(certificates);
      await change(files, certificates);
      const logger = new RecordedLogger();
      const text = errorText(await assertRejects(() => readClientTls(files, NAMES, logger)));
      assertEquals([reason.test(text), logger.lines], [true, []], text);
    },
  });
}
