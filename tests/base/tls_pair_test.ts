import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { join } from "node:path";
import { readTlsPair, type TlsPairFiles } from "../../src/base/tls_pair.ts";
import { type Certificates, makeCertificates } from "../support/certificates.ts";
import { ChildProcess } from "../support/child_process.ts";
import { needs, requireTool } from "../support/tools.ts";

const NAMES = { cert: "SOME_TLS_CERT", key: "SOME_TLS_KEY", ca: "SOME_TLS_CACERT" };
const KEY_PAIRS = "a pair with an RSA key of at least 2048 bits, or an ECDSA or Ed25519 key would be right";

Deno.test({
  ...needs(["openssl"], "TLS pair: what the files hold, without what stands around the certificates"),
  async fn() {
    await using certificates = await makeCertificates();
    const { authority, otherAuthority, server } = certificates;
    const [cert = "", key = "", first = "", second = ""] = await texts(
      server.certFile,
      server.keyFile,
      authority.certFile,
      otherAuthority.certFile,
    );
    const plain = { cert: server.certFile, key: server.keyFile };
    assertEquals(await readTlsPair(plain, NAMES), { cert, key, warnings: [] });
    const chain = await write(certificates, "chain.pem", `leaf\n${cert}\r\nauthority\n${first}`);
    const both = await write(certificates, "both.pem", `# one\n${first}# two\n${second}`);
    assertEquals(await readTlsPair({ ...plain, cert: chain, ca: both }, NAMES), {
      cert: `${cert}${first}`,
      key,
      ca: `${first}${second}`,
      warnings: [],
    });
  },
});

Deno.test({
  ...needs(["openssl"], "TLS pair: every kind of key that a handshake takes, and none that it does not"),
  async fn() {
    await using certificates = await makeCertificates();
    const curve = (name: string) => ["ec", "-pkeyopt", `ec_paramgen_curve:${name}`];
    const kinds: Readonly<Record<string, readonly string[]>> = {
      p256: curve("prime256v1"),
      p384: curve("secp384r1"),
      p521: curve("secp521r1"),
      ed25519: ["ed25519"],
      rsa2048: ["rsa:2048"],
      rsa1024: ["rsa:1024"],
      k256: curve("secp256k1"),
    };
    const seen: Record<string, string> = {};
    for (const [kind, newKey] of Object.entries(kinds)) {
      const files = await selfSigned(certificates, kind, ["-newkey", ...newKey]);
      seen[kind] = await readTlsPair(files, NAMES).then(() => "taken", (error: Error) => error.message);
    }
    const k256 = join(certificates.folder, "k256.key");
    const rsa1024 = join(certificates.folder, "rsa1024.pem");
    const { rsa1024: tooShort = "", ...others } = seen;
    assertEquals(others, {
      p256: "taken",
      p384: "taken",
      p521: "taken",
      ed25519: "taken",
      rsa2048: "taken",
      k256: `Cannot use SOME_TLS_KEY "${k256}": TLS does not take a key of its kind; ${KEY_PAIRS}`,
    });
    const start = `Cannot use SOME_TLS_CERT "${rsa1024}": TLS does not take it (`;
    assertEquals([tooShort.startsWith(start), tooShort.endsWith(`key too small); ${KEY_PAIRS}`)], [
      true,
      true,
    ]);
  },
});

Deno.test({
  ...needs(["openssl"], "TLS pair: what cannot be used is named with its setting and its path"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, authority, server, otherClient } = certificates;
    const { certFile: cert, keyFile: key } = server;
    const [certText = ""] = await texts(cert);
    const text = await write(certificates, "text.pem", "no certificate");
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const secondBroken = await write(certificates, "second.pem", certText + broken);
    const brokenKey = await write(
      certificates,
      "broken.key",
      "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n",
    );
    const locked = join(folder, "locked.key");
    await openssl(["pkey", "-in", key, "-aes128", "-passout", "pass:secret", "-out", locked]);
    const large = await write(certificates, "large.pem", " ".repeat(1024 * 1024 + 1));
    const pipe = join(folder, "pipe.pem");
    await new Deno.Command("mkfifo", { args: [pipe] }).output();
    const wrong = (name: string, path: string, state: string) =>
      `Cannot use SOME_TLS_${name} "${path}": ${state}`;
    const cases: readonly (readonly [TlsPairFiles, string])[] = [
      [
        { cert: text, key },
        wrong("CERT", text, "it holds no certificate in PEM; certificates in PEM would be right"),
      ],
      [
        { cert: key, key },
        wrong("CERT", key, "it holds no certificate in PEM; certificates in PEM would be right"),
      ],
      [
        { cert: secondBroken, key },
        wrong(
          "CERT",
          secondBroken,
          "its certificate number 2 cannot be read; certificates in PEM would be right",
        ),
      ],
      [
        { cert, key: cert },
        wrong(
          "KEY",
          cert,
          "it holds no private key in PEM; a private key in PEM without a password would be right",
        ),
      ],
      [
        { cert, key: brokenKey },
        wrong(
          "KEY",
          brokenKey,
          "its key cannot be read; a private key in PEM without a password would be right",
        ),
      ],
      [
        { cert, key: locked },
        wrong("KEY", locked, "the key is encrypted; a private key in PEM without a password would be right"),
      ],
      [
        { cert, key: otherClient.keyFile },
        wrong(
          "KEY",
          otherClient.keyFile,
          `it is not the key of the first certificate in SOME_TLS_CERT "${cert}"; ` +
            "a certificate with its own key would be right",
        ),
      ],
      [
        { cert, key, ca: text },
        wrong("CACERT", text, "it holds no certificate in PEM; certificates in PEM would be right"),
      ],
      [{ cert: folder, key }, wrong("CERT", folder, "it is no file; a file in PEM would be right")],
      [{ cert: pipe, key }, wrong("CERT", pipe, "it is no file; a file in PEM would be right")],
      [
        { cert: large, key },
        wrong("CERT", large, "it has more than 1 MiB; a file in PEM would be right"),
      ],
    ];
    const seen = [];
    for (const [files] of cases) {
      seen.push((await assertRejects(() => readTlsPair(files, NAMES))).message);
    }
    assertEquals(seen, cases.map(([, message]) => message));
    const missing = { cert, key: join(folder, "missing.key"), ca: authority.certFile };
    assertMatch(
      (await assertRejects(() => readTlsPair(missing, NAMES))).message,
      /^Cannot use SOME_TLS_KEY ".*missing\.key": .*(?:ENOENT|no such file).*; a file in PEM that can be read would be right$/i,
    );
  },
});

Deno.test({
  ...needs(["openssl"], "TLS pair: a certificate out of its time is taken, with a warning"),
  async fn() {
    await using certificates = await makeCertificates();
    const { certFile: cert, keyFile: key } = certificates.server;
    const day = 86_400_000;
    const at = async (offset: number) => {
      const clock = { now: () => Date.now() + offset };
      const { warnings } = await readTlsPair({ cert, key }, NAMES, { clock });
      return warnings.map((line) => line.replace(/\w{3} +\d+ [\d:]+ \d{4} GMT$/, "…"));
    };
    assertEquals(await at(0), []);
    assertEquals(await at(3 * day), [
      `a certificate of SOME_TLS_CERT "${cert}" is no longer valid, since …`,
    ]);
    assertEquals(await at(-day), [`a certificate of SOME_TLS_CERT "${cert}" is not valid before …`]);
  },
});

async function texts(...paths: readonly string[]): Promise<string[]> {
  return await Promise.all(paths.map((path) => Deno.readTextFile(path)));
}

async function write({ folder }: Certificates, name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await Deno.writeTextFile(path, text);
  return path;
}

async function selfSigned(
  { folder }: Certificates,
  name: string,
  newKey: readonly string[],
): Promise<{ cert: string; key: string }> {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  await openssl([
    ...["req", "-x509", ...newKey, "-nodes", "-days", "1", "-subj", "/CN=localhost"],
    ...["-keyout", key, "-out", cert],
  ]);
  return { cert, key };
}

async function openssl(args: readonly string[]): Promise<void> {
  await using child = new ChildProcess(requireTool("openssl"), { args });
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`Cannot run "openssl": ${child.stderrLines.join("\n")}`);
}
