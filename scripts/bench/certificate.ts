import { outputOf } from "./child.ts";

/** Files of a key and of its certificate, which is its own authority. */
export interface CertificateFiles {
  readonly keyFile: string;
  readonly certFile: string;
}

/** Makes a certificate for `localhost` in a folder, once; the second time it is there. */
export async function makeCertificate(folder: string): Promise<CertificateFiles> {
  const files = { keyFile: `${folder}/key.pem`, certFile: `${folder}/cert.pem` };
  if (await isThere(files.certFile)) return files;
  await outputOf("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    ...["-keyout", files.keyFile, "-out", files.certFile],
  ]);
  return files;
}

async function isThere(file: string): Promise<boolean> {
  return await Deno.stat(file).then(() => true, () => false);
}
