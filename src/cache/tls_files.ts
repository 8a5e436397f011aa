import { Buffer } from "node:buffer";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import tls from "node:tls";
import { errorText } from "../base/error_text.ts";
import { parseCertificates } from "../base/pem.ts";
import { allEnded } from "../base/wait.ts";

/** How the other end is known, and as whom to come; files are PEM. */
export interface TlsFiles {
  /** What the names of the settings begin with, for errors. */
  readonly settings: "KV_TLS" | "MC_TLS";
  /** `…_CACERT`: authorities that are trusted beside the system's. */
  readonly authorityFile?: string | undefined;
  /** `…_CLIENT_CERT` and `…_CLIENT_KEY`: both or none. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** `…_SKIP_HOSTNAME_VERIFICATION`: the chain is verified, the name is not. */
  readonly skipHostname?: boolean;
}

/** What is given to `tls.connect` beside the address. */
export interface TlsConnectOptions {
  readonly rejectUnauthorized: true;
  readonly minVersion: "TLSv1.2";
  readonly ca?: string[];
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly checkServerIdentity?: () => undefined;
}

/** What is being read. A file system that hangs keeps a thread for each read, so there is one at a time. */
const reading = new Map<string, Promise<TlsConnectOptions>>();

/**
 * Reads the files as they are now: certificates that live a short time are replaced under us. Rejects
 * with the setting and the path of a file that cannot be used, since TLS itself would go on without it.
 */
export function readTlsFiles(files: TlsFiles): Promise<TlsConnectOptions> {
  const { settings, authorityFile, certFile, keyFile, skipHostname = false } = files;
  const name = JSON.stringify([settings, authorityFile, certFile, keyFile, skipHostname]);
  let options = reading.get(name);
  if (options === undefined) {
    options = read(files).finally(() => reading.delete(name));
    reading.set(name, options);
  }
  return options;
}

async function read(files: TlsFiles): Promise<TlsConnectOptions> {
  const [authorities, cert, key] = await allEnded([
    readOne(files, "CACERT", files.authorityFile),
    readOne(files, "CLIENT_CERT", files.certFile),
    readOne(files, "CLIENT_KEY", files.keyFile),
  ]);
  return {
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
    ...(authorities === undefined
      ? {}
      : { ca: [...systemAuthorities(), ...certificatesOf(authorities, files)] }),
    ...pairOf(cert, key, files),
    ...(files.skipHostname === true ? { checkServerIdentity: () => undefined } : {}),
  };
}

async function readOne(
  files: TlsFiles,
  suffix: string,
  path: string | undefined,
): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw unusable(files, suffix, path, errorText(error));
  }
}

let system: readonly string[] | undefined;

/** Naming an authority takes the place of those that hold without one, so they are named too. */
function systemAuthorities(): readonly string[] {
  return system ??= [...new Set([...tls.getCACertificates("default"), ...tls.getCACertificates("system")])];
}

function certificatesOf(pem: Buffer, files: TlsFiles): string[] {
  try {
    return parseCertificates(pem.toString("latin1")).map((one) => one.pem);
  } catch {
    // In the words that hold for a file without any certificate as well.
  }
  throw unusable(files, "CACERT", files.authorityFile, "it holds no certificate in PEM that can be read");
}

function pairOf(
  cert: Buffer | undefined,
  key: Buffer | undefined,
  files: TlsFiles,
): { cert: Buffer; key: Buffer } | undefined {
  if (cert === undefined || key === undefined) return undefined;
  let belongs: boolean;
  try {
    const certificate = new X509Certificate(cert);
    belongs = certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    // The cause would be the words of a parser; of a key nothing is shown at all.
    throw unusable(files, "CLIENT_CERT", files.certFile, "it or its key is no PEM that can be read");
  }
  if (!belongs) {
    throw unusable(files, "CLIENT_CERT", files.certFile, `${files.settings}_CLIENT_KEY is not its key`);
  }
  return { cert, key };
}

function unusable(files: TlsFiles, suffix: string, path: string | undefined, state: string): Error {
  return new Error(`Cannot use ${files.settings}_${suffix} "${path ?? ""}": ${state}`);
}
