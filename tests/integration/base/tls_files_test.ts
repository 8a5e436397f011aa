import { assert, assertEquals, assertMatch, assertRejects } from "#assert";
import { join } from "node:path";
import { readTlsPair, type TlsPairFiles } from "../../../src/net/tls_files.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { needs, requireTool } from "../../harness/tools.ts";

const NAMES = { cert: "SOME_TLS_CERT", key: "SOME_TLS_KEY", ca: "SOME_TLS_CACERT" };
const KEY_PAIRS = "expected a pair with an RSA key of at least 2048 bits, or an ECDSA or Ed25519 key";

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
    const taken = Object.fromEntries(Object.keys(kinds).slice(0, 5).map((kind) => [kind, "taken"]));
    assertEquals(others, {
      ...taken,
      k256: `Cannot use SOME_TLS_KEY "${k256}": TLS does not take a key of its kind; ${KEY_PAIRS}`,
    });
    const start = `Cannot use SOME_TLS_CERT "${rsa1024}": TLS does not take it (`;
    assert(tooShort.startsWith(start) && tooShort.endsWith(`key too small); ${KEY_PAIRS}`), tooShort);
  },
});

Deno.test({
  ...needs(["openssl"], "TLS pair: a text that cannot be used is named with its setting and its path"),
  async fn() {
    await using certificates = await makeCertificates();
    const { certFile: cert, keyFile: key } = certificates.server;
    const other = certificates.otherClient.keyFile;
    const text = await write(certificates, "text.pem", "no certificate");
    const [certText = ""] = await texts(cert);
    const second = await write(certificates, "second.pem", certText + pem("CERTIFICATE"));
    const broken = await write(certificates, "broken.key", pem("PRIVATE KEY"));
    const locked = join(certificates.folder, "locked.key");
    await openssl(["pkey", "-in", key, "-aes128", "-passout", "pass:secret", "-out", locked]);
    const noCertificate = "it holds no certificate in PEM; expected certificates in PEM";
    const goodKey = "expected a private key in PEM without a password";
    const foreign = `it is not the key of the first certificate in SOME_TLS_CERT "${cert}"; ` +
      "expected a certificate with its own key";
    const number2 = "its certificate number 2 cannot be read; expected certificates in PEM";
    await assertUnusable([
      [{ cert: text, key }, "CERT", text, noCertificate],
      [{ cert: key, key }, "CERT", key, noCertificate],
      [{ cert: second, key }, "CERT", second, number2],
      [{ cert, key: cert }, "KEY", cert, `it holds no private key in PEM; ${goodKey}`],
      [{ cert, key: broken }, "KEY", broken, `its key cannot be read; ${goodKey}`],
      [{ cert, key: locked }, "KEY", locked, `the key is encrypted; ${goodKey}`],
      [{ cert, key: other }, "KEY", other, foreign],
      [{ cert, key, ca: text }, "CACERT", text, noCertificate],
    ]);
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
    assertEquals(await at(31 * day), [
      `a certificate of SOME_TLS_CERT "${cert}" is no longer valid, since …`,
    ]);
    assertEquals(await at(-day), [`a certificate of SOME_TLS_CERT "${cert}" is not valid before …`]);
  },
});

Deno.test({
  ...needs(["openssl"], "TLS pair: what is no file that can be read is named with its setting and its path"),
  async fn() {
    await using certificates = await makeCertificates();
    const { folder, authority, server } = certificates;
    const { certFile: cert, keyFile: key } = server;
    const missing = { cert, key: join(folder, "missing.key"), ca: authority.certFile };
    assertMatch(
      (await assertRejects(() => readTlsPair(missing, NAMES))).message,
      /^Cannot use SOME_TLS_KEY ".*missing\.key": .*(?:ENOENT|no such file).*; expected a readable file in PEM$/i,
    );
    const large = await write(certificates, "large.pem", " ".repeat(1024 * 1024 + 1));
    const pipe = join(folder, "pipe.pem");
    await new Deno.Command("mkfifo", { args: [pipe] }).output();
    await assertUnusable([
      [{ cert: folder, key }, "CERT", folder, "it is no file; expected a readable file in PEM"],
      [{ cert: pipe, key }, "CERT", pipe, "it is no file; expected a readable file in PEM"],
      [{ cert: large, key }, "CERT", large, "it has more than 1 MiB; expected a readable file in PEM"],
    ]);
  },
});

type Unusable = readonly [files: TlsPairFiles, name: string, path: string, state: string];

async function assertUnusable(cases: readonly Unusable[]): Promise<void> {
  const seen = [];
  for (const [files] of cases) {
    seen.push((await assertRejects(() => readTlsPair(files, NAMES))).message);
  }
  assertEquals(seen, cases.map(([, name, path, state]) => `Cannot use SOME_TLS_${name} "${path}": ${state}`));
}

/** A block whose content is nothing of its kind. */
function pem(kind: string): string {
  return `-----BEGIN ${kind}-----\nc2VjcmV0\n-----END ${kind}-----\n`;
}

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
