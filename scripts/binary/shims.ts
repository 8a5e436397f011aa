/**
 * Functions that Deno 2.6.10 lacks and Weir uses, for the program of `deno task test:binary`: the first import of
 * its main module and of its workers. Deno 2.9, which Weir requires, has all of them.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import net from "node:net";
import { DatabaseSync } from "node:sqlite";
import tls from "node:tls";

const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";
const CURVES: Readonly<Record<string, string>> = { p256: "prime256v1", p384: "secp384r1", p521: "secp521r1" };
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g;

const paths = new WeakMap<Deno.FsFile, string | URL>();
const locks = new WeakMap<Deno.FsFile, DatabaseSync>();
const { openSync } = Deno;
Object.assign(Deno, {
  openSync(path: string | URL, options?: Deno.OpenOptions) {
    const file = openSync(path, options);
    paths.set(file, path);
    return file;
  },
});
Object.assign(Deno.FsFile.prototype, { tryLockSync });
Object.assign(net.Socket.prototype, { resetAndDestroy: net.Socket.prototype.destroy });
Object.assign(X509Certificate.prototype, { checkPrivateKey });
Object.assign(tls, { getCACertificates });
nameCurves();

/**
 * Locks a file for this process unless another one has it. An empty file is a database, whose lock ends with the first
 * descriptor of the file that is closed, so at the latest when the process ends.
 */
function tryLockSync(this: Deno.FsFile): boolean {
  const database = new DatabaseSync(paths.get(this) ?? "", { timeout: 0 });
  try {
    database.exec("BEGIN EXCLUSIVE");
    locks.set(this, database);
    return true;
  } catch {
    database.close();
    return false;
  }
}

function checkPrivateKey(this: X509Certificate, key: KeyObject): boolean {
  const options = { type: "spki", format: "der" } as const;
  return createPublicKey(key).export(options).equals(this.publicKey.export(options));
}

/** That release has its own names for the curves of keys. */
function nameCurves(): void {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  for (let at: object | null = privateKey; at !== null; at = Object.getPrototypeOf(at)) {
    const get = Object.getOwnPropertyDescriptor(at, "asymmetricKeyDetails")?.get;
    if (get === undefined) continue;
    Object.defineProperty(at, "asymmetricKeyDetails", {
      get(this: KeyObject) {
        const { namedCurve, ...details } = get.call(this);
        return namedCurve === undefined
          ? details
          : { ...details, namedCurve: CURVES[namedCurve] ?? namedCurve };
      },
    });
    return;
  }
}

function getCACertificates(type: "default" | "system"): readonly string[] {
  return type === "default"
    ? tls.rootCertificates
    : Deno.readTextFileSync(AUTHORITIES).match(CERTIFICATE) ?? [];
}
