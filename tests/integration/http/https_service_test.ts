import { assert, assertEquals, assertMatch } from "#assert";
import { errorText } from "../../../src/base/error_text.ts";
import { type CertificateFiles, makeCertificates } from "../../harness/certificates.ts";
import { freePort } from "../../harness/free_port.ts";
import { handled } from "../../harness/handled.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { HttpsClient } from "./https_fixture.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 1000000 }\n",
};
const BODY = JSON.stringify({ domain: "shop", descriptors: [{ entries: [{ key: "k", value: "v" }] }] });
const NAMES = "DNS:localhost,IP:127.0.0.1";

function httpsTest(name: string, run: () => Promise<void>): void {
  Deno.test({ ...needs(["openssl"], name), fn: run });
}

function tlsEnv({ certFile, keyFile }: CertificateFiles): Record<string, string> {
  return { HTTP_SERVER_USE_TLS: "true", HTTP_SERVER_TLS_CERT: certFile, HTTP_SERVER_TLS_KEY: keyFile };
}

async function clientOf(weir: ServeFixture, { certFile }: CertificateFiles): Promise<HttpsClient> {
  return new HttpsClient(Number(weir.httpAddress.split(":").at(-1)), await Deno.readTextFile(certFile));
}

async function ask(client: HttpsClient): Promise<number> {
  const response = await client.fetch("/json", { method: "POST", body: BODY });
  await response.body?.cancel();
  return response.status;
}

httpsTest("two services share one HTTPS port, and the one that stays takes everything", async () => {
  await using certificates = await makeCertificates();
  const { authority, otherAuthority, server } = certificates;
  const second = await certificates.issue("second", { names: NAMES, byOther: true });
  const PORT = `${freePort()}`;
  await using one = await ServeFixture.start({ env: { ...tlsEnv(server), PORT }, rules: RULES });
  await using two = await ServeFixture.start({ env: { ...tlsEnv(second), PORT }, rules: RULES });
  using ofOne = await clientOf(one, authority);
  using ofTwo = await clientOf(two, otherAuthority);
  await until("each to be met", async () => await ofOne.trusts() && await ofTwo.trusts());
  await one.stop();
  for (let connection = 0; connection < 20; connection++) assertEquals(await ofTwo.trusts(), true);
  assertEquals(await ask(ofTwo), 200);
});

httpsTest("a pair that is swapped while requests run loses none of them", async () => {
  await using certificates = await makeCertificates();
  const { authority, otherAuthority, server } = certificates;
  await using weir = await ServeFixture.start({ env: tlsEnv(server), rules: RULES });
  using former = await clientOf(weir, authority);
  using next = await clientOf(weir, otherAuthority);
  const statuses: number[] = [];
  let isRenewed = false;
  const work = async () => {
    // A client that resumes its TLS session is not shown a certificate.
    while (!isRenewed) statuses.push(await ask(former).catch(refused));
    for (let request = 0; request < 50; request++) statuses.push(await ask(next));
  };
  const refused = (error: unknown): number => {
    assertMatch(String(error instanceof Error ? error.cause : error), /certificate|UnknownIssuer/i);
    return 200;
  };
  const worked = handled(Promise.all(Array.from({ length: 4 }, work)));
  await until("requests to run", () => statuses.length > 50);
  await certificates.issue("server", { names: NAMES, byOther: true });
  await until("the next pair to be met", () => next.trusts());
  isRenewed = true;
  await worked;
  assertEquals(statuses.filter((status) => status !== 200), []);
});

httpsTest("an expired certificate is served, with a warning", async () => {
  await using certificates = await makeCertificates();
  await using weir = await ServeFixture.start({
    env: tlsEnv(await certificates.issue("expired", { names: NAMES, isExpired: true })),
    rules: RULES,
  });
  using client = await clientOf(weir, certificates.authority);
  assertEquals(await client.trusts(), false);
  const warned = weir.log.filter((line) => /HTTP_SERVER_TLS_CERT .* no longer valid/.test(line));
  assertEquals(warned.length, 1);
});

const REFUSALS: Readonly<
  Record<string, readonly [env: (own: CertificateFiles, other: CertificateFiles) => object, said: RegExp]>
> = {
  "no key": [
    ({ certFile }) => ({ HTTP_SERVER_USE_TLS: "true", HTTP_SERVER_TLS_CERT: certFile }),
    /^Invalid HTTP_SERVER_USE_TLS "true": HTTP_SERVER_TLS_KEY is not set; expected .*$/,
  ],
  "a file that is not there": [
    ({ keyFile }) => tlsEnv({ certFile: "/nowhere/server.pem", keyFile }),
    /Cannot use HTTP_SERVER_TLS_CERT .*\/nowhere\/server\.pem.* expected /,
  ],
  "the key of another certificate": [
    ({ certFile }, { keyFile }) => tlsEnv({ certFile, keyFile }),
    /Cannot use HTTP_SERVER_TLS_KEY .* expected /,
  ],
};

for (const [name, [env, said]] of Object.entries(REFUSALS)) {
  httpsTest(`HTTPS with ${name} keeps the service from starting`, async () => {
    await using certificates = await makeCertificates();
    const { server, client } = certificates;
    await using weir = await ServeFixture.begin({ env: { ...env(server, client) }, rules: RULES });
    const error = await weir.opened.then(() => undefined, (error: unknown) => error);
    assertMatch(errorText(error), said);
    assert(!weir.log.some((line) => line.includes("Listening for HTTP")));
  });
}
