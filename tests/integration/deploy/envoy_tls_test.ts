import { assertEquals } from "#assert";
import { parse } from "yaml";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { startEnvoy } from "../../harness/envoy.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const DEPLOY = new URL("../../../config/deploy/", import.meta.url);
const RULES = {
  "shop.yaml": `domain: shop
descriptors:
  - key: account
    rate_limit: { unit: day, requests_per_unit: 2 }
`,
};
/** The name of Weir in the files, and of Envoy in the tests. */
const WEIR_NAME = "weir.internal";
const ENVOY_NAME = "envoy.internal";

const FILES: Readonly<Record<string, (certificates: Certificates) => Promise<Record<string, string>>>> = {
  "envoy.yaml": () => Promise.resolve({}),
  "envoy-tls.yaml": serverSettings,
  "envoy-mtls.yaml": async (certificates) => ({
    ...await serverSettings(certificates),
    GRPC_CLIENT_TLS_CACERT: certificates.authority.certFile,
    GRPC_CLIENT_TLS_SAN: ENVOY_NAME,
  }),
};

Deno.test({
  ...needs(["envoy", "openssl"], "Envoy asks Weir as the files say, and is refused where a name is another"),
  async fn(test) {
    await using certificates = await makeCertificates();
    const client = await certificates.issue("client_named", { names: `DNS:${ENVOY_NAME}` });
    for (const [file, settings] of Object.entries(FILES)) {
      for (const engine of ["grpc-js", "native"]) {
        await test.step(`${file}: with ${engine}, and 429 over the limit`, async () => {
          const env = { ...await settings(certificates), GRPC_ENGINE: engine };
          await using weir = await ServeFixture.start({ rules: RULES, env });
          assertEquals(await statusesOf({ file, weir, certificates, client }), [200, 200, 429]);
        });
      }
    }
    await test.step("envoy-tls.yaml: a Weir with another name is not asked, so that all passes", async () => {
      const env = pairSettings(certificates.elsewhere);
      await using weir = await ServeFixture.start({ rules: RULES, env });
      const bed = { file: "envoy-tls.yaml", weir, certificates, client: certificates.client };
      assertEquals(await statusesOf(bed), [200, 200, 200]);
    });
    await test.step("envoy-mtls.yaml: an Envoy with another name gets no answer, and Weir says why", async () => {
      const env = await FILES["envoy-mtls.yaml"]?.(certificates) ?? {};
      await using weir = await ServeFixture.start({ rules: RULES, env });
      const bed = { file: "envoy-mtls.yaml", weir, certificates, client: certificates.client };
      assertEquals(await statusesOf(bed), [200, 200, 200]);
      const cause = `cause="the client's certificate is not for \\"${ENVOY_NAME}\\""`;
      await until("the refusal to be logged", () => weir.log.some((line) => line.includes(cause)));
    });
  },
});

interface EnvoyBed {
  readonly file: string;
  readonly weir: ServeFixture;
  readonly certificates: Certificates;
  /** The certificate of Envoy. */
  readonly client: CertificateFiles;
}

/** The statuses of three requests for one account through Envoy with that file. */
async function statusesOf({ file, weir, certificates, client }: EnvoyBed): Promise<number[]> {
  const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using application = Deno.serve(quiet, () => new Response("hello"));
  const ports = new Map([[10_000, 0], [3_000, application.addr.port], [
    8_081,
    portOf(weir.running.addresses.grpc),
  ]]);
  const paths = new Map([
    ["/etc/envoy/tls/weir-ca.pem", certificates.authority.certFile],
    ["/etc/envoy/tls/client.pem", client.certFile],
    ["/etc/envoy/tls/client.key", client.keyFile],
  ]);
  const config = parse(await Deno.readTextFile(new URL(file, DEPLOY)), (key, value) => {
    if (key === "port_value") return ports.get(Number(value));
    // A busy machine is no failure.
    if (key === "timeout" || key === "connect_timeout") return "60s";
    return key === "filename" ? paths.get(String(value)) : value;
  });
  await using envoy = await startEnvoy(config);
  const seen = [];
  for (let call = 0; call < 3; call++) {
    const response = await fetch(`http://127.0.0.1:${portOf(envoy.address("edge"))}/`, {
      headers: { "x-account": "bob" },
    });
    await response.body?.cancel();
    seen.push(response.status);
  }
  return seen;
}

async function serverSettings(certificates: Certificates): Promise<Record<string, string>> {
  return pairSettings(await certificates.issue("weir", { names: `DNS:${WEIR_NAME}` }));
}

function pairSettings({ certFile, keyFile }: CertificateFiles): Record<string, string> {
  return { GRPC_SERVER_USE_TLS: "true", GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}
