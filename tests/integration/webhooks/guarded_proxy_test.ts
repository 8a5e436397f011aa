import { assertEquals, assertMatch, assertThrows } from "#assert";
import { connect } from "node:net";
import { Cidrs } from "../../../src/net/outbound/address_ranges.ts";
import { proxyCredentials } from "../../../src/net/outbound/dial.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { needing } from "../../harness/tools.ts";
import { failure, guarded, Loopback, tlsReceiver } from "./guarded_fetch_fixture.ts";
import { receiver, SECRET } from "../../harness/sender_fixture.ts";

Deno.test("an http proxy is asked for the whole URL, and decides about addresses", async () => {
  await using proxy = await Loopback.start();
  const url = new URL(`http://user:p%40ss-${SECRET}@127.0.0.1:${proxy.port}/`);
  const lookup = () => Promise.reject(new Error("no name is asked for"));
  await using fetch = guarded({ allow: new Cidrs(), proxy: url, lookup });
  assertEquals(await (await fetch("http://10.0.0.1:81/a?b")).text(), "ok");
  const [{ request: { url: asked, headers } } = { request: { url: "", headers: {} } }] = proxy.seen;
  assertEquals([asked, headers.host, headers["proxy-authorization"]], [
    "http://10.0.0.1:81/a?b",
    "10.0.0.1:81",
    `Basic ${btoa(`user:p@ss-${SECRET}`)}`,
  ]);
  assertMatch(
    assertThrows(() => guarded({ proxy: new URL("https://proxy.test/") })).message,
    /^Invalid WEBHOOK_PROXY: expected the scheme http:, got "https:"$/,
  );
});

Deno.test("the credentials of a proxy are decoded where they can be", () => {
  const credentials = (text: string) => proxyCredentials(new URL(`http://${text}127.0.0.1/`));
  assertEquals([credentials(""), credentials("a:%40@"), credentials("a@"), credentials("a:%zz@")], [
    undefined,
    `Basic ${btoa("a:@")}`,
    `Basic ${btoa("a:")}`,
    `Basic ${btoa("a:%zz")}`,
  ]);
});

/** The answers of a proxy to CONNECT, and the resulting errors. */
const TUNNELS: Readonly<Record<string, readonly [answer: string, kind: string, message: string]>> = {
  refused: ["HTTP/1.1 407 Who\r\n\r\n", "connect", "the proxy responded with 407"],
  garbage: ["hello\r\n\r\n", "protocol", "the response of the proxy is not valid HTTP"],
  "a head without end": [
    `HTTP/1.1 200 OK\r\na: ${"x".repeat(20_000)}`,
    ...["protocol", "the response of the proxy is not valid HTTP"] as const,
  ],
  open: ["HTTP/1.1 200 OK\r\n\r\n", "tls", "the TLS handshake failed"],
};

for (const [name, [answer, kind, message]] of Object.entries(TUNNELS)) {
  Deno.test(`https goes through a tunnel of the proxy: ${name}`, async () => {
    let asked = "";
    await using proxy = await receiver((socket, head) => {
      asked ||= head;
      socket.write(answer);
      if (name === "open") socket.once("data", () => socket.end());
    });
    const url = new URL(`http://user:${SECRET}@127.0.0.1:${proxy.port}/`);
    await using fetch = guarded({ proxy: url });
    const error = await failure(() => fetch(`https://receiver.test/?${SECRET}`));
    assertEquals([error.kind, error.message.replace(/ \(\w+\)$/, "")], [kind, message]);
    assertEquals(asked.split("\r\n").slice(0, 3), [
      "CONNECT receiver.test:443 HTTP/1.1",
      "host: receiver.test:443",
      `proxy-authorization: Basic ${btoa(`user:${SECRET}`)}`,
    ]);
  });
}

needing("openssl").test(
  "https through a proxy and to own authorities, verified by the name at the other end",
  async () => {
    await using certificates = await makeCertificates();
    const { server: pair, authority } = certificates;
    await using server = await tlsReceiver(
      pair,
      (response, body, { headers: { host } }) => response.end(`${host} ${body}`),
    );
    const { port } = server;
    const asked: string[] = [];
    await using proxy = await receiver((socket, head) => {
      asked.push(head.split("\r\n")[0] ?? "");
      const through = connect({ host: "127.0.0.1", port });
      through.on("error", () => {});
      through.once("connect", () => {
        socket.removeAllListeners("data");
        socket.write("HTTP/1.1 200 OK\r\nvia: x\r\n\r\n");
        socket.pipe(through).pipe(socket);
      });
    });
    const authorities = [await Deno.readTextFile(authority.certFile)];
    await using fetch = guarded({ authorities, proxy: new URL(`http://127.0.0.1:${proxy.port}`) });
    const body = "x".repeat(100_000);
    const response = await fetch("https://localhost/a", { method: "POST", body });
    assertEquals(await response.text(), `localhost ${body}`);
    assertEquals(asked, ["CONNECT localhost:443 HTTP/1.1", "CONNECT localhost:443 HTTP/1.1"]);
    const wrong = await failure(() => fetch("https://elsewhere.test/"));
    assertEquals(wrong.message, "the certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)");
    // The first connection showed who issued it: later ones ask the right authorities first.
    server.connections = 0;
    await using direct = guarded({ authorities, lookup: () => Promise.resolve(["127.0.0.1"]) });
    const counts: number[] = [];
    for (let count = 0; count < 3; count++) {
      await (await direct(`https://localhost:${port}/`)).text();
      counts.push(server.connections);
    }
    assertEquals(counts, [2, 3, 4]);
  },
);

Deno.test("proxies of the environment are not obeyed", async () => {
  await using server = await Loopback.start();
  const program = new URL("environment_child.ts", import.meta.url).pathname;
  await using child = new ChildProcess(Deno.execPath(), {
    args: ["run", "-A", "--no-check", program, "fetch", `http://127.0.0.1:${server.port}/`],
    env: { ...Deno.env.toObject(), HTTP_PROXY: `http://127.0.0.1:${freePort()}` },
  });
  await child.exited;
  assertEquals(child.stdoutLines, ["200"], child.stderrLines.join("\n"));
});
