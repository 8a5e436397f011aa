import type { ConnectionOptions } from "node:tls";
import { readAuthorities, readTlsPair } from "../../../base/tls_files.ts";
import { isSocketFolder, type PostgresAddressFields, type SslMode } from "../../../base/postgres_address.ts";

/** In which order encryption and none are tried; the second only where the first was refused as such. */
const ATTEMPTS: Readonly<Record<SslMode, readonly boolean[]>> = {
  "disable": [false],
  "allow": [false, true],
  "prefer": [true, false],
  "require": [true],
  "verify-ca": [true],
  "verify-full": [true],
};

/** Whether to try with encryption, one after the other; a unix socket has no use for it. */
export function tlsAttempts({ sslMode }: PostgresAddressFields, host: string): readonly boolean[] {
  return isSocketFolder(host) ? [false] : ATTEMPTS[sslMode];
}

/** What TLS is given. Files are read as they are now, since certificates are renewed under us. */
export async function readPostgresTls(fields: PostgresAddressFields): Promise<ConnectionOptions> {
  const { sslMode, rootCertFile, certFile, keyFile } = fields;
  const [authorities, pair] = await Promise.all([
    rootCertFile === undefined || rootCertFile === "system"
      ? undefined
      : readAuthorities("sslrootcert", rootCertFile),
    certFile === undefined || keyFile === undefined
      ? undefined
      : readTlsPair({ cert: certFile, key: keyFile }, { cert: "sslcert", key: "sslkey" }),
  ]);
  return {
    minVersion: "TLSv1.2",
    // Without authorities nothing can be checked; with them every mode checks at least who issued the certificate.
    rejectUnauthorized: rootCertFile !== undefined,
    ...(authorities === undefined ? {} : { ca: authorities }),
    ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
    ...(sslMode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
  };
}
