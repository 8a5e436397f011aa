import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import type { RedisTls } from "./redis_server.ts";
import { requireTool } from "./tools.ts";

/** A certificate in PEM, and its private key next to it. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Options of a certificate. */
interface IssueOptions {
  /** Subject names such as `DNS:localhost,IP:127.0.0.1`; none for a client. */
  readonly names?: string;
  /** Of the two authorities, the one that no client trusts. */
  readonly byOther?: boolean;
  /** For how many days it is valid; 30 when absent, since the service is degraded two weeks before the end. */
  readonly days?: number;
  /** When it becomes valid and expires, as `YYYYMMDD`, instead of `days`. */
  readonly dates?: readonly [from: string, to: string];
  /** Bits of an RSA key, in place of an ECDSA key. */
  readonly rsaBits?: number;
  /** True if it expired a day ago. */
  readonly isExpired?: boolean;
}

/** The certificates that this thread made first; all later ones are copies of them. */
let first: Promise<string> | undefined;

/** Makes a folder of certificates for servers and clients on this machine. */
export async function makeCertificates(): Promise<Certificates> {
  const made = await (first ??= makeFirst());
  const certificates = new Certificates(await Deno.makeTempDir({ prefix: "weir_certificates_" }));
  for (const { name } of Deno.readDirSync(made)) {
    await Deno.copyFile(join(made, name), join(certificates.folder, name));
  }
  return certificates;
}

async function makeFirst(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "weir_certificates_" });
  globalThis.addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
  await new Certificates(folder).fill();
  return folder;
}

/** Certificates in a folder that is removed at the end of an `await using`. */
export class Certificates implements AsyncDisposable {
  readonly folder: string;
  /** The authority that issued everything else, and another one that issued nothing of it. */
  readonly authority: CertificateFiles;
  readonly otherAuthority: CertificateFiles;
  /** Named `localhost` and `127.0.0.1`. */
  readonly server: CertificateFiles;
  /** Named `elsewhere.test`, which is nowhere. */
  readonly elsewhere: CertificateFiles;
  readonly client: CertificateFiles;
  /** Of the other authority: a server that asks for certificates refuses it. */
  readonly otherClient: CertificateFiles;

  constructor(folder: string) {
    this.folder = folder;
    this.authority = this.#files("authority");
    this.otherAuthority = this.#files("other_authority");
    this.server = this.#files("server");
    this.elsewhere = this.#files("elsewhere");
    this.client = this.#files("client");
    this.otherClient = this.#files("other_client");
  }

  /** Makes what the properties name. */
  async fill(): Promise<void> {
    await Promise.all([this.#makeAuthority("authority"), this.#makeAuthority("other_authority")]);
    await Promise.all([
      this.issue("server", { names: "DNS:localhost,IP:127.0.0.1" }),
      this.issue("elsewhere", { names: "DNS:elsewhere.test" }),
      this.issue("client"),
      this.issue("other_client", { byOther: true }),
    ]);
  }

  /** Makes one more certificate, or the same one anew. */
  async issue(name: string, options: IssueOptions = {}): Promise<CertificateFiles> {
    const files = this.#files(name);
    const { certFile, keyFile } = options.byOther === true ? this.otherAuthority : this.authority;
    const names = options.names === undefined ? [] : ["-addext", `subjectAltName=${options.names}`];
    const use = ["-addext", "extendedKeyUsage=serverAuth,clientAuth"];
    await this.#openssl([
      ...[...newKey(options), "-days", `${options.days ?? 30}`, "-subj", `/CN=${name}`, ...names],
      ...["-CA", certFile, "-CAkey", keyFile, "-addext", "basicConstraints=critical,CA:FALSE", ...use],
      ...["-keyout", files.keyFile, "-out", files.certFile],
    ]);
    if (options.dates !== undefined) await this.#date(files, { certFile, keyFile }, options.dates);
    if (options.isExpired === true) await this.#expire(files, { certFile, keyFile });
    return files;
  }

  /** The `tls` option of a redis-server: with this certificate, for clients of the authority. */
  redisTls(server: CertificateFiles = this.server, asksClients = true): RedisTls {
    return { ...server, authorityFile: this.authority.certFile, asksClients };
  }

  /** Removes the folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }

  #files(name: string): CertificateFiles {
    return { certFile: join(this.folder, `${name}.pem`), keyFile: join(this.folder, `${name}.key`) };
  }

  async #makeAuthority(name: string): Promise<void> {
    const { certFile, keyFile } = this.#files(name);
    // Its own subject, so that the two are not taken for one another.
    const subject = ["-subj", `/CN=${name}`, "-addext", "keyUsage=critical,keyCertSign,cRLSign"];
    await this.#openssl([...NEW_KEY, "-days", "30", ...subject, "-keyout", keyFile, "-out", certFile]);
  }

  /** A request for the same certificate: `req -x509` takes no dates in the past. */
  async #requestOf({ certFile, keyFile }: CertificateFiles): Promise<string> {
    const request = `${certFile}.request`;
    await this.#openssl([
      "x509",
      "-x509toreq",
      "-in",
      certFile,
      "-signkey",
      keyFile,
      ...COPY,
      "-out",
      request,
    ]);
    return request;
  }

  async #expire(files: CertificateFiles, { certFile, keyFile }: CertificateFiles): Promise<void> {
    const request = await this.#requestOf(files);
    const issuer = ["-CA", certFile, "-CAkey", keyFile, "-days", "-1", ...COPY];
    await this.#openssl(["x509", "-req", "-in", request, ...issuer, "-out", files.certFile]);
  }

  async #date(
    files: CertificateFiles,
    authority: CertificateFiles,
    [from, to]: readonly [string, string],
  ): Promise<void> {
    const { certFile } = files;
    const request = await this.#requestOf(files);
    const config = `${certFile}.cnf`;
    const place = `database=${config}.index\nnew_certs_dir=${this.folder}\nrand_serial=yes`;
    const rules = "default_md=sha256\npolicy=p\ncopy_extensions=copy\n[p]\ncommonName=supplied";
    await Deno.writeTextFile(config, `[ca]\ndefault_ca=d\n[d]\n${place}\n${rules}\n`);
    await Deno.writeTextFile(`${config}.index`, "");
    await this.#openssl([
      ...["ca", "-batch", "-config", config, "-in", request, "-notext", "-out", certFile],
      ...["-cert", authority.certFile, "-keyfile", authority.keyFile],
      ...["-startdate", `${from}000000Z`, "-enddate", `${to}000000Z`],
    ]);
  }

  async #openssl(args: readonly string[]): Promise<void> {
    await using openssl = new ChildProcess(requireTool("openssl"), { args });
    const { code } = await openssl.exited;
    if (code !== 0) throw new Error(`Cannot make a certificate: ${openssl.stderrLines.join("\n")}`);
  }
}

const COPY = ["-copy_extensions", "copy"];
function newKey({ rsaBits }: IssueOptions): readonly string[] {
  return rsaBits === undefined ? NEW_KEY : ["req", "-x509", "-newkey", `rsa:${rsaBits}`, "-nodes"];
}

const NEW_KEY = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** The texts of a certificate and its key. */
export async function pairOf(
  { certFile, keyFile }: CertificateFiles,
): Promise<{ cert: string; key: string }> {
  const [cert, key] = await Promise.all([Deno.readTextFile(certFile), Deno.readTextFile(keyFile)]);
  return { cert, key };
}
