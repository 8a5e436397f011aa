import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import tls from "node:tls";
import type { GrpcTarget, GrpcTls } from "../../../../src/grpc/client/dial.ts";
import { GrpcConnection, type OpenOptions } from "../../../../src/grpc/client/grpc_connection.ts";
import { startNative } from "../../../../src/grpc/native/native_engine.ts";
import { type CertificateFiles, makeCertificates, pairOf } from "../../../harness/certificates.ts";
import { outcomeOf } from "../../../harness/client_bed.ts";
import { EngineBed } from "../../../harness/engine_bed.ts";
import { freePort } from "../../../harness/free_port.ts";
import { probePath } from "../../../harness/probe.ts";
import { TlsBed } from "../tls_bed.ts";

const CLOSED = /^UNAVAILABLE: the server closed the connection$/;
const HELLO = new TextEncoder().encode("hello");

/** Opens, calls once and closes; the answer, or the error of either. */
async function called(target: GrpcTarget, options?: OpenOptions): Promise<string> {
  return await outcomeOf((async () => {
    await using client = await GrpcConnection.open(target, options);
    return await client.unary(probePath("Echo"), HELLO, { timeoutMs: 60_000 });
  })());
}

/** Host and port of a server on this machine. */
function at(address: string, host = "127.0.0.1") {
  return { host, port: Number(address.split(":").at(-1)) };
}

/** The client certificate, as the option has it. */
async function shown(files: CertificateFiles): Promise<GrpcTls> {
  return await pairOf(files);
}

Deno.test("dial: TLS with every mistake that a client can make", async (t) => {
  await using bed = await TlsBed.open(startNative, { asksClients: true });
  const { certificates } = bed;
  const ca = await Deno.readTextFile(certificates.authority.certFile);
  const otherCa = await Deno.readTextFile(certificates.otherAuthority.certFile);
  const client = await shown(certificates.client);
  const address = at(bed.engine.address);
  const cases: readonly { readonly name: string; readonly target: GrpcTarget; readonly outcome: RegExp }[] = [
    { name: "all is right", target: { address, tls: { ca, ...client } }, outcome: /^hello$/ },
    {
      name: "a list of authorities, and a name of the certificate",
      target: { address, tls: { ca: [otherCa, ca], ...client, serverName: "localhost" } },
      outcome: /^hello$/,
    },
    {
      name: "another authority",
      target: { address, tls: { ca: otherCa, ...client } },
      outcome: /^UNAVAILABLE: self-signed certificate in certificate chain$/,
    },
    {
      name: "the authorities of the system",
      target: { address, tls: client },
      outcome: /^UNAVAILABLE: self-signed certificate in certificate chain$/,
    },
    {
      name: "another name",
      target: { address, tls: { ca, ...client, serverName: "elsewhere.test" } },
      outcome: /^UNAVAILABLE: .*elsewhere\.test.*altnames/,
    },
    {
      name: "another IP address",
      target: { address, tls: { ca, ...client, serverName: "127.0.0.2" } },
      outcome: /^UNAVAILABLE: .*127\.0\.0\.2 is not in the cert/,
    },
    { name: "no client certificate", target: { address, tls: { ca } }, outcome: CLOSED },
    {
      name: "a client certificate of another authority",
      target: { address, tls: { ca, ...await shown(certificates.otherClient) } },
      outcome: CLOSED,
    },
    { name: "no TLS", target: { address }, outcome: CLOSED },
  ];
  for (const { name, target, outcome } of cases) {
    await t.step(name, async () => assertMatch(await called(target), outcome));
  }
});

Deno.test("dial: an expired certificate is named as such", async () => {
  await using certificates = await makeCertificates();
  const pair = await pairOf(await certificates.issue("old", { names: "DNS:localhost", isExpired: true }));
  await using server = await tlsServer({ ...pair, ALPNProtocols: ["h2"] });
  const ca = await Deno.readTextFile(certificates.authority.certFile);
  const outcome = await called({ address: server.address, tls: { ca, serverName: "localhost" } });
  assertMatch(outcome, /^UNAVAILABLE: the certificate expired on .* \(CERT_HAS_EXPIRED\)$/);
});

Deno.test("dial: servers that do not speak HTTP/2 over TLS, or no TLS at all", async () => {
  await using certificates = await makeCertificates();
  const ca = await Deno.readTextFile(certificates.authority.certFile);
  const pair = await pairOf(certificates.server);
  for (
    const [ALPNProtocols, reason] of [
      [[], "the server does not speak HTTP/2 over TLS"],
      [["http/1.1"], "received fatal alert: NoApplicationProtocol"],
    ] as const
  ) {
    await using server = await tlsServer({ ...pair, ALPNProtocols: [...ALPNProtocols] });
    const outcome = await called({ address: server.address, tls: { ca, serverName: "localhost" } });
    assertEquals(outcome, `UNAVAILABLE: ${reason}`);
  }
  await using plain = await EngineBed.open();
  const outcome = await called({ address: at(plain.engine.address), tls: { ca } });
  assertMatch(outcome, /^UNAVAILABLE: received corrupt message/);
  assertEquals(plain.takeLog().length, 1);
});

Deno.test("dial: a certificate and a key that are garbage", async () => {
  await using bed = await TlsBed.open(startNative, { asksClients: true });
  const address = at(bed.engine.address);
  const ca = await Deno.readTextFile(bed.certificates.authority.certFile);
  for (const files of [{ ca: "garbage" }, { ca, cert: "garbage", key: "garbage" }]) {
    assertMatch(await called({ address, tls: files }), /^UNAVAILABLE: /);
  }
});

Deno.test("dial: a unix socket, with and without TLS, and one that is not there", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_client_" });
  const path = join(folder, "grpc.sock");
  try {
    assertEquals(await called({ address: { path } }), "UNAVAILABLE: there is no such socket");
    {
      await using bed = await TlsBed.open(startNative, { target: { kind: "unix", path, mode: undefined } });
      const ca = await Deno.readTextFile(bed.certificates.authority.certFile);
      assertEquals(await called({ address: { path }, tls: { ca } }), "hello");
      assertMatch(await called({ address: { path }, tls: { ca, serverName: "x.test" } }), /altnames/);
    }
    using listener = Deno.listen({ transport: "unix", path: join(folder, "left.sock") });
    listener.close();
    const left = await called({ address: { path: join(folder, "left.sock") } });
    assertMatch(left, /^UNAVAILABLE: (?:connection refused|there is no such socket)$/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("dial: no server, and no such name, with and without TLS", async () => {
  const address = { host: "127.0.0.1", port: freePort() };
  for (const tls of [undefined, {}]) {
    assertEquals(await called({ address, tls }), "UNAVAILABLE: connection refused");
    const unknown = await called({ address: { ...address, host: "no-such-host.invalid" }, tls });
    assertMatch(unknown, /^UNAVAILABLE: .*(?:lookup|ENOTFOUND|EAI_AGAIN)/);
  }
});

Deno.test("dial: a server that accepts and says nothing, with and without TLS, is given up after the timeout", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepted: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of listener) accepted.push(connection);
  })();
  const address = { host: "127.0.0.1", port: listener.addr.port };
  const outcomes = [{ address }, { address, tls: {} }].map((target) =>
    called(target, { connectTimeoutMs: 200 })
  );
  const stop = new AbortController();
  const stopped = called({ address, tls: {} }, { signal: stop.signal });
  const silent = "UNAVAILABLE: no connection within 200 ms";
  assertEquals(await Promise.all(outcomes), [silent, silent]);
  stop.abort();
  assertEquals(await stopped, "CANCELLED: the call was cancelled");
  listener.close();
  await accepting;
  for (const connection of accepted) connection.close();
});

/** A server over TLS that reads and says nothing after the handshake. */
async function tlsServer(options: tls.TlsOptions) {
  const sockets = new Set<tls.TLSSocket>();
  const server = tls.createServer(options, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.resume();
  });
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  return {
    address: { host: "127.0.0.1", port: typeof bound === "object" ? bound?.port ?? 0 : 0 },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
