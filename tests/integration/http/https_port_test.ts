import { assert, assertEquals, assertMatch } from "#assert";
import { rateLimitRoute } from "../../../src/http/routes/rate_limit_route.ts";
import { createRouter } from "../../../src/http/server/router.ts";
import { type Certificates, makeCertificates, pairOf } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { needs, requireTool } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { Gate, type HandlerOf, wholeJson } from "../../harness/http_fixture.ts";
import { ServedHttps } from "./https_fixture.ts";

const NAMES = "DNS:localhost,IP:127.0.0.1";
const REQUEST = "GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n";

/** A test of a served port, whose requests a gate may hold. */
function httpsTest(
  name: string,
  run: (served: ServedHttps, gate: Gate, certificates: Certificates) => Promise<void>,
  handlerOf?: HandlerOf,
): void {
  Deno.test({
    ...needs(["openssl"], name),
    async fn() {
      await using certificates = await makeCertificates();
      const gate = new Gate();
      await using served = await ServedHttps.start(certificates, handlerOf ?? (() => gate.handler));
      await run(served, gate, certificates);
    },
  });
}

httpsTest("HTTPS is served by HTTP/1.1, also to clients that offer HTTP/2", async (served) => {
  assertEquals(await (await served.former.fetch("/quick")).text(), "quick");
  using raw = await served.former.dial();
  await raw.write(REQUEST);
  assertMatch(await raw.read((text) => text.endsWith("quick")), /^HTTP\/1\.1 200 /);
  assertEquals(served.listener.hostname, "127.0.0.1");
});

httpsTest(
  "a renewed pair is met by new connections, and open ones end with their next answer",
  async (served, gate, certificates) => {
    const renewed = await pairOf(await certificates.issue("renewed", { names: NAMES, byOther: true }));
    const slow = served.former.fetch("/slow");
    using idle = await served.former.dial();
    await idle.write(REQUEST);
    await idle.read((text) => text.endsWith("quick"));
    await until("the request to run", () => gate.waiting === 1);
    assertEquals([await served.former.trusts(), await served.other.trusts()], [true, false]);
    served.renew(renewed);
    assertEquals([await served.former.trusts(), await served.other.trusts()], [false, true]);
    assertEquals(await (await served.other.fetch("/quick")).text(), "quick");
    await idle.write(REQUEST);
    assertMatch(await idle.read(), /^HTTP\/1\.1 200 [^]*^connection: close\r$[^]*quick$/m);
    gate.open();
    assertEquals(await (await slow).text(), "done");
    assertEquals(served.log.lines, []);
  },
);

httpsTest("the last answers leave at the end of the grace", async (served, gate) => {
  const answer = served.former.fetch("/slow");
  await until("the request to run", () => gate.waiting === 1);
  const closed = served.listener.close(1_000);
  served.clock.advance(1_000);
  const response = await answer;
  await response.body?.cancel();
  await closed;
  assertEquals([response.status, served.clock.waiting], [503, 0]);
  gate.open();
});

const GARBAGE: readonly (readonly [name: string, bytes: string | Uint8Array])[] = [
  ["plain HTTP", REQUEST],
  ["HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["bytes of no protocol", crypto.getRandomValues(new Uint8Array(4_096))],
  ["a record that is too long", Uint8Array.of(22, 3, 1, 255, 255, 1, 0)],
  ["an alert", Uint8Array.of(21, 3, 3, 0, 2, 2, 40)],
];

for (const [name, bytes] of GARBAGE) {
  httpsTest(`${name} on the HTTPS port ends its connection and nothing else`, async (served) => {
    for (let attempt = 0; attempt < 3; attempt++) {
      using raw = await served.dialPlain();
      await raw.write(bytes);
      const text = await raw.read().catch((error: unknown) => {
        if (error instanceof Deno.errors.ConnectionReset) return "";
        throw error;
      });
      assert(!text.includes("quick"), text);
    }
    assertEquals(await (await served.former.fetch("/quick")).text(), "quick");
  });
}

const VERSIONS: readonly (readonly [flag: string, code: number])[] = [["-tls1_1", 1], ["-tls1_2", 0], [
  "-tls1_3",
  0,
]];

for (const [flag, expected] of VERSIONS) {
  httpsTest(
    `a client with ${flag} alone is ${expected === 0 ? "taken" : "refused"}`,
    async (served, _, certificates) => {
      const to = ["s_client", "-connect", `127.0.0.1:${served.listener.port}`, "-verify_return_error"];
      // Without this, openssl itself would not offer the old version.
      const offer = [flag, "-cipher", "ALL:@SECLEVEL=0", "-CAfile", certificates.authority.certFile];
      await using client = new ChildProcess(requireTool("openssl"), { args: [...to, ...offer] });
      const { code } = await client.exited;
      assertEquals(code, expected, client.stderrLines.join("\n"));
      assertEquals(await (await served.former.fetch("/quick")).text(), "quick");
    },
  );
}

httpsTest(
  "a peer that stays in its handshake is closed after 10 s, and a stop does not wait for it",
  async (served) => {
    const hanging = await Promise.all(Array.from({ length: 20 }, () => served.dialPlain()));
    await hanging[0]?.write(Uint8Array.of(22, 3, 1));
    assertEquals(await (await served.former.fetch("/quick")).text(), "quick");
    await until("all to be accepted", () => served.listener.accepting.connections >= 20);
    served.clock.advance(10_000);
    for (const raw of hanging) {
      assertEquals(await raw.ended(), true);
      raw.close();
    }
  },
);

httpsTest("half a body over HTTPS is 408 after 10 s, with the id of the request", async (served) => {
  using raw = await served.former.dial();
  const head = "POST /json HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nContent-Length: 100\r\n\r\n";
  await raw.write(`${head}{"domain`);
  // One is for the connections.
  await until("the body to be awaited", () => served.clock.waiting === 2);
  served.clock.advance(10_000);
  const text = await raw.read(wholeJson);
  assertMatch(text, /^HTTP\/1\.1 408 [^]*^x-request-id: mine$[^]*"requestId":"mine"/im);
  assertEquals(served.log.lines.map(({ fields }) => [fields.kind, fields.requestId]), [["timeout", "mine"]]);
}, ({ log, clock }) => {
  const decide = () => {
    throw new Error("half a request was decided");
  };
  return createRouter([rateLimitRoute({ decide, clock })], { logger: log, clock });
});
