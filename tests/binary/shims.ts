/**
 * What Deno 2.6.10 lacks and Weir uses, for the program of `deno task test:binary`: the first import of its main module
 * and of its workers. Deno 2.9, which Weir requires, has all of it.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import tls from "node:tls";

const AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt";
const CURVES: Readonly<Record<string, string>> = { p256: "prime256v1", p384: "secp384r1", p521: "secp521r1" };
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g;

Object.assign(Deno.FsFile.prototype, { tryLockSync });
Object.assign(X509Certificate.prototype, { checkPrivateKey });
Object.assign(tls, { getCACertificates });
nameCurves();

/** Locks a file unless a lock of it is known to the kernel. Two processes in one moment may both find none, and one waits. */
function tryLockSync(this: Deno.FsFile, exclusive: boolean): boolean {
  const { ino } = this.statSync();
  const isLocked = Deno.readTextFileSync("/proc/locks").split("\n").some((line) =>
    / FLOCK /.test(line) && line.includes(`:${ino} `)
  );
  if (!isLocked) this.lockSync(exclusive);
  return !isLocked;
}

function checkPrivateKey(this: X509Certificate, key: KeyObject): boolean {
  const options = { type: "spki", format: "der" } as const;
  return createPublicKey(key).export(options).equals(this.publicKey.export(options));
}

/** That release has names of its own for the curves of keys. */
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
