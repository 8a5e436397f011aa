import tls from "node:tls";
import { readAuthorities, readTlsPair } from "../base/tls_files.ts";
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
  readonly cert?: string;
  readonly key?: string;
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

async function read({ settings, authorityFile, certFile, keyFile, skipHostname }: TlsFiles): Promise<
  TlsConnectOptions
> {
  const names = { cert: `${settings}_CLIENT_CERT`, key: `${settings}_CLIENT_KEY` };
  const [authorities, pair] = await allEnded([
    authorityFile === undefined ? undefined : readAuthorities(`${settings}_CACERT`, authorityFile),
    certFile === undefined || keyFile === undefined
      ? undefined
      : readTlsPair({ cert: certFile, key: keyFile }, names),
  ]);
  return {
    rejectUnauthorized: true,
    minVersion: "TLSv1.2",
    ...(authorities === undefined ? {} : { ca: [...systemAuthorities(), ...authorities] }),
    ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
    ...(skipHostname === true ? { checkServerIdentity: () => undefined } : {}),
  };
}

let system: readonly string[] | undefined;

/** Naming an authority replaces those that hold without one, so they are named too. */
function systemAuthorities(): readonly string[] {
  return system ??= [...new Set([...tls.getCACertificates("default"), ...tls.getCACertificates("system")])];
}
