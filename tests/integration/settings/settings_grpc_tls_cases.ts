import { assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { TlsPeer } from "../grpc/tls_bed.ts";
import type { CertificateFiles, Certificates } from "../../harness/certificates.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { compare, type Env, type SettingCases, SHOP } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";

/** Tests of TLS on the gRPC port. */
export const GRPC_TLS_CASES: SettingCases = {
  GRPC_SERVER_USE_TLS: { sees: "TLS on the gRPC port", tools: ["openssl"], run: speaksTls },
  GRPC_SERVER_TLS_CERT: {
    sees: "the certificate that clients are shown",
    tools: ["openssl"],
    run: showsCert,
  },
  GRPC_SERVER_TLS_KEY: { sees: "the key of the certificate", tools: ["openssl"], run: fitsKey },
  GRPC_CLIENT_TLS_CACERT: {
    sees: "certificates of clients that are asked for",
    tools: ["openssl"],
    run: asksClients,
  },
  GRPC_CLIENT_TLS_SAN: {
    sees: "the name that clients have to have",
    tools: ["openssl"],
    run: asksName,
  },
};

async function speaksTls(): Promise<void> {
  const certificates = CERTIFICATES.value;
  const { GRPC_SERVER_USE_TLS: use = "", ...env } = pairEnv(certificates.server);
  await compare({ GRPC_SERVER_USE_TLS: use }, {
    env,
    look: async (service) => (await seenBy(service, certificates)).isWelcome,
    unset: false,
    set: true,
  });
}

async function showsCert(): Promise<void> {
  const certificates = CERTIFICATES.value;
  const { server, elsewhere } = certificates;
  const { GRPC_SERVER_TLS_CERT: _, ...without } = pairEnv(server);
  assertMatch(
    assertThrows(() => readSettings({ ...without, BACKEND_TYPE: "memory" })).message,
    /^Invalid GRPC_SERVER_USE_TLS "true": GRPC_SERVER_TLS_CERT is not set; expected .*$/,
  );
  for (const pair of [server, elsewhere]) {
    await using service = await ServeFixture.start({ env: pairEnv(pair), rules: SHOP });
    const { fingerprint } = await seenBy(service, certificates);
    assertEquals(fingerprint, new X509Certificate(await Deno.readTextFile(pair.certFile)).fingerprint256);
  }
}

async function fitsKey(): Promise<void> {
  const certificates = CERTIFICATES.value;
  const { server, client } = certificates;
  const { GRPC_SERVER_TLS_KEY: _, ...without } = pairEnv(server);
  assertMatch(
    assertThrows(() => readSettings({ ...without, BACKEND_TYPE: "memory" })).message,
    /^Invalid GRPC_SERVER_USE_TLS "true": GRPC_SERVER_TLS_KEY is not set; expected .*$/,
  );
  const env = { ...without, GRPC_SERVER_TLS_KEY: client.keyFile };
  const error = await assertRejects(() => ServeFixture.start({ env, rules: SHOP }));
  assertMatch(
    error.message,
    /^Cannot use GRPC_SERVER_TLS_KEY ".*client\.key": it is not the key of .*; expected .*$/,
  );
}

async function asksClients(): Promise<void> {
  const certificates = CERTIFICATES.value;
  const { server, authority, client, otherClient } = certificates;
  await compare({ GRPC_CLIENT_TLS_CACERT: authority.certFile }, {
    env: pairEnv(server),
    look: (service) => welcomes(service, certificates, [client, otherClient, undefined]),
    unset: [true, true, true],
    set: [true, false, false],
  });
}

async function asksName(): Promise<void> {
  const certificates = CERTIFICATES.value;
  const { server, authority, client } = certificates;
  const name = { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_SAN: "proxy.test" };
  const wrong = [name, { ...name, ...pairEnv(server) }].map((env) =>
    assertThrows(() => readSettings(env)).message
  );
  const refused = 'Invalid GRPC_CLIENT_TLS_SAN "proxy.test": ';
  const [withTls, asked] = ["GRPC_SERVER_USE_TLS=true", "GRPC_CLIENT_TLS_CACERT"];
  assertEquals(wrong, [
    `${refused}gRPC is served without TLS; expected ${withTls} and ${asked}`,
    `${refused}client certificates are not asked for; expected ${asked}`,
  ]);
  const named = await certificates.issue("named", { names: "DNS:proxy.test" });
  await compare({ GRPC_CLIENT_TLS_SAN: "proxy.test" }, {
    env: { ...pairEnv(server), GRPC_CLIENT_TLS_CACERT: authority.certFile },
    look: (service) => welcomes(service, certificates, [named, client]),
    unset: [true, true],
    set: [true, false],
  });
}

function pairEnv({ certFile, keyFile }: CertificateFiles): Env {
  return { GRPC_SERVER_USE_TLS: "true", GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
}

async function welcomes(
  service: ServeFixture,
  certificates: Certificates,
  clients: readonly (CertificateFiles | undefined)[],
): Promise<boolean[]> {
  const seen = [];
  for (const client of clients) seen.push((await seenBy(service, certificates, client)).isWelcome);
  return seen;
}

/** What a client with this certificate, or with none, sees of the gRPC port. */
async function seenBy(
  service: ServeFixture,
  { authority }: Certificates,
  client?: CertificateFiles,
): Promise<TlsPeer> {
  const [host = "", port = ""] = service.running.addresses.grpc.split(":");
  const text = (path: string) => Deno.readTextFile(path);
  const own = client === undefined
    ? {}
    : { cert: await text(client.certFile), key: await text(client.keyFile) };
  await using peer = await TlsPeer.connect({
    ...own,
    host,
    port: Number(port),
    ca: await text(authority.certFile),
    // The name is not what is looked at here.
    checkServerIdentity: () => undefined,
    ALPNProtocols: ["h2"],
  });
  return peer;
}
