import tls from "node:tls";
import { readClientTls, type TlsFileLog } from "../net/client_tls.ts";

/** The PEM files of a client, by their settings. */
export interface TlsFiles {
  /** The prefix of the settings, for errors. */
  readonly settings: "KV_TLS" | "MC_TLS";
  /** `…_CACERT`: authorities that are trusted in addition to those of the system. */
  readonly authorityFile?: string | undefined;
  /** `…_CLIENT_CERT` and `…_CLIENT_KEY`: both or none. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** `…_SKIP_HOSTNAME_VERIFICATION`: the chain is verified, the name is not. */
  readonly skipHostname?: boolean;
  /** The log for files that keep their last good content. */
  readonly log?: TlsFileLog | undefined;
}

/** The options of `tls.connect` except the address. */
interface TlsConnectOptions {
  readonly rejectUnauthorized: true;
  readonly minVersion: "TLSv1.2";
  readonly ca?: string[];
  readonly cert?: string;
  readonly key?: string;
  readonly checkServerIdentity?: () => undefined;
}

/** Reads the files as they are now. Rejects with the setting and the path of a file that was never usable. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsConnectOptions> {
  const { settings, authorityFile, certFile, keyFile, skipHostname, log } = files;
  const { pair, authorities } = await readClientTls(
    { cert: certFile, key: keyFile, ca: authorityFile },
    { cert: `${settings}_CLIENT_CERT`, key: `${settings}_CLIENT_KEY`, ca: `${settings}_CACERT` },
    log,
  );
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
