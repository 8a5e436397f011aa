/** The client, a port with or without TLS, and an address without a name. */
import { assertEquals, assertMatch } from "@std/assert";
import { runCommand } from "../../../src/cli/commands.ts";
import { type CertificateFiles, makeCertificates } from "../../harness/certificates.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";

const QUESTION = ["-domain", "d", "-descriptors", "a=b"];
// After a connection that failed grpc-js lets its backoff timer of a second run out, even on a closed client.
const BACKOFF_STAYS = { sanitizeOps: false, sanitizeResources: false } as const;

function tlsEnv({ certFile, keyFile }: CertificateFiles): Record<string, string> {
  return { GRPC_SERVER_USE_TLS: "true", GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
}

Deno.test({
  ...needs(["openssl"], "client: TLS to an IP address, and the cause when only one side uses TLS"),
  ...BACKOFF_STAYS,
  async fn() {
    await using certificates = await makeCertificates();
    const { server, elsewhere, authority } = certificates;
    await using plain = await ServeFixture.start();
    await using secure = await ServeFixture.start({ env: tlsEnv(server) });
    const ask = async (address: string, flags: readonly string[]) => {
      const { code, err } = await run([...QUESTION, "-dial_string", address, ...flags]);
      return [code, err.join().replace(`"${address}"`, "ADDRESS")];
    };
    assertEquals(await ask(plain.grpcAddress, ["--tls", "--ca", authority.certFile]), [
      1,
      "Cannot call ADDRESS: UNAVAILABLE: no connection: the port does not use TLS; remove --tls, or correct the address",
    ]);
    const closed = [
      1,
      "Cannot call ADDRESS: UNAVAILABLE: no connection: the server closed it; is it a gRPC port, and does it use TLS? See --tls and --cert",
    ];
    assertEquals(await ask(secure.grpcAddress, []), closed);
    assertEquals(await ask(plain.httpAddress, []), closed);

    // The address is an IP address, which the certificate must contain.
    const trust = ["--tls", "--ca", authority.certFile];
    assertEquals(await ask(secure.grpcAddress, trust), [0, ""]);
    await using other = await ServeFixture.start({ env: tlsEnv(elsewhere) });
    const [code, err] = await ask(other.grpcAddress, trust);
    assertEquals(code, 1);
    assertMatch(String(err), /IP: 127\.0\.0\.1 is not in the cert's list/);
  },
});

async function run(args: readonly string[]): Promise<{ readonly code: number; readonly err: string[] }> {
  const err: string[] = [];
  const output = { stdout: () => {}, stderr: (text: string) => void err.push(text) };
  const code = await runCommand(["client", ...args], { environment: {}, output });
  return { code, err };
}
