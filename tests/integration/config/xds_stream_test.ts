import { assertEquals, assertMatch } from "#assert";
import { ServerCredentials } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import { systemClock } from "../../../src/base/clock.ts";
import type { GrpcCode } from "../../../src/grpc/grpc_service.ts";
import {
  openXdsStream,
  xdsStatusText,
  type XdsStream,
  type XdsTarget,
} from "../../../src/config/xds_stream.ts";
import { DISCOVERY_REQUEST, DISCOVERY_RESPONSE } from "../../../src/wire/discovery.ts";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { RULES_TYPE, shopConfig, XdsServer } from "../../harness/xds_server.ts";

/** A stream whose events are kept; closed at the end of an `await using`. */
class Peer implements AsyncDisposable {
  /** Versions that came. */
  readonly versions: string[] = [];
  readonly ends: string[] = [];
  readonly #stream: XdsStream;

  constructor(url: string, options: Partial<XdsTarget> = {}) {
    const target = {
      url,
      headers: new Map(),
      maxMessageBytes: 4_194_304,
      clock: systemClock,
      logger: new RecordedLogger(),
      ...options,
    };
    this.#stream = openXdsStream(target, {
      onMessage: (bytes) => void this.versions.push(DISCOVERY_RESPONSE.decode(bytes).versionInfo),
      onEnd: (reason) => void this.ends.push(reason),
    });
    this.ask("");
  }

  ask(versionInfo: string, responseNonce = ""): void {
    const node = { id: "one", cluster: "" };
    const request = { versionInfo, node, resourceNames: [], typeUrl: RULES_TYPE, responseNonce };
    this.#stream.send(DISCOVERY_REQUEST.encode(request));
  }

  /** Waits for the end; answers why. */
  async end(): Promise<string> {
    return await until("the stream to end", () => this.ends[0]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stream.close();
  }
}

Deno.test("xds stream: requests and responses, with the headers of the call", async () => {
  await using server = await XdsServer.start();
  server.set("1", shopConfig({}));
  const headers = new Map([["authorization", "Bearer x:y"], ["x-key-bin", "AQI="]]);
  await using peer = new Peer(server.url, { headers });
  await until("the first version", () => peer.versions.length === 1);
  peer.ask("1", "n1");
  await until("its acknowledgement", () => server.requests.length === 2);
  server.set("2", shopConfig({}));
  await until("the next", () => peer.versions.length === 2);
  assertEquals([peer.versions, server.take().map(({ kind }) => kind)], [["1", "2"], ["first", "ack"]]);
  const [seen] = server.headers;
  const sent = ["authorization", "x-key-bin"].map((name) => seen?.get(name));
  assertEquals(sent, [["Bearer x:y"], [Buffer.from([1, 2])]]);
});

Deno.test("xds stream: closed, the server sees its connection go, and nothing more is reported", async () => {
  await using server = await XdsServer.start();
  const peer = new Peer(server.url);
  await until("the stream", () => server.streams === 1);
  await peer[Symbol.asyncDispose]();
  await eventually([0, []], () => [server.streams, peer.ends]);
});

const ENDS: Readonly<Record<string, { end: (server: XdsServer) => void; reason: RegExp }>> = {
  "a stream that the server ends": { end: (server) => server.endStreams(), reason: /^it ended the stream$/ },
  "a server that is killed": { end: (server) => server.stop(), reason: /./ },
  "a server that says goodbye": { end: (server) => server.goAway(50), reason: /./ },
  "a message that is too large": {
    end: (server) => server.set("2", shopConfig({}, "x".repeat(5_000))),
    reason: /larger than max .*; increase XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES, or use fewer rules$/,
  },
};

for (const [name, { end, reason }] of Object.entries(ENDS)) {
  Deno.test(`xds stream: ${name} is reported once`, async () => {
    await using server = await XdsServer.start();
    server.set("1", shopConfig({}));
    await using peer = new Peer(server.url, { maxMessageBytes: 5_000 });
    await until("the first version", () => peer.versions.length === 1);
    peer.ask("1", "n1");
    await until("its acknowledgement", () => server.requests.length === 2);
    end(server);
    assertMatch(await peer.end(), reason);
    assertEquals([peer.ends.length, peer.versions], [1, ["1"]]);
  });
}

const STATUSES: readonly (readonly [code: GrpcCode, message: string, text: string])[] = [
  ["UNAVAILABLE", "", "it ended the stream with status UNAVAILABLE"],
  ["UNAVAILABLE", "maintenance", "maintenance"],
  ["INTERNAL", "a".repeat(2_000), `${"a".repeat(500)}…`],
  ["INTERNAL", `${"a".repeat(499)}\u{1f600}`, `${"a".repeat(499)}\ufffd…`],
  [
    "RESOURCE_EXHAUSTED",
    "Received message larger than max (5 vs 4)",
    "Received message larger than max (5 vs 4); increase XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES, or use fewer rules",
  ],
  [
    "RESOURCE_EXHAUSTED",
    "Received message larger than max (4294967295 vs 4)",
    "Received message larger than max (4294967295 vs 4)",
  ],
];

Deno.test("xds stream: every status of a failed call has a bounded text", () => {
  const found = STATUSES.map(([code, message]) => [code, message, xdsStatusText({ code, message })]);
  assertEquals(found, STATUSES.map((row) => [...row]));
});

Deno.test("xds stream: a refused connection is reported immediately", async () => {
  const url = `127.0.0.1:${freePort()}`;
  await using peer = new Peer(url);
  assertEquals(await peer.end(), "connection refused");
});

for (const tls of [undefined, {}]) {
  const way = tls === undefined ? "plain text" : "TLS";
  Deno.test(`xds stream: a server that takes ${way} connections and says nothing is left`, async () => {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const clock = new FakeClock();
    await using peer = new Peer(`127.0.0.1:${listener.addr.port}`, { clock, tls });
    const connection = await listener.accept();
    const bytes = new Uint8Array(4_096);
    await connection.read(bytes);
    clock.advance(20_000);
    assertEquals(await peer.end(), "no connection within 20000 ms");
    // Its connection goes too; a reset is as good as an end.
    let isGone = false;
    const read = async () => {
      while (await connection.read(bytes) !== null);
    };
    void read().catch(() => {}).then(() => isGone = true);
    await until("its connection to go", () => isGone);
    connection.close();
  });
}

Deno.test("xds stream: closed while it connects, it sends nothing and leaves no timer", async () => {
  await using server = await XdsServer.start();
  await new Peer(server.url)[Symbol.asyncDispose]();
  assertEquals(server.requests, []);
});

Deno.test("xds stream: once it is connected, only the keepalive is left of its timers", async () => {
  await using server = await XdsServer.start();
  const clock = new FakeClock();
  await using peer = new Peer(server.url, { clock });
  await until("the request", () => server.requests.length === 1);
  await eventually([1, []], () => [clock.waiting, peer.ends]);
});

Deno.test("xds stream: a peer that is gone without a word is noticed by its missing answer to a ping", async () => {
  await using server = await XdsServer.start();
  server.set("1", shopConfig({}));
  await using relay = await startTcpRelay(server.port);
  await using peer = new Peer(relay.url, { keepalive: { everyMs: 500, withinMs: 1_000 } });
  await until("the first version", () => peer.versions.length === 1);
  relay.setMode("stall");
  assertEquals(await peer.end(), "the server did not answer a keepalive ping");
});

type ClientFiles = Partial<NonNullable<XdsTarget["tls"]>>;

/** Files of a client, why the stream ends if so, and how the server is if not as usual. */
type TlsCase = readonly [
  files: (all: Certificates) => ClientFiles,
  end?: RegExp | undefined,
  server?: "elsewhere" | "asks for a certificate",
];

const trusting = ({ authority }: Certificates): ClientFiles => ({ ca: authority.certFile });
const SELF_SIGNED = /^self-signed certificate in certificate chain$/;
const ASKS = "asks for a certificate";

/** The server has the certificate of `localhost` and `127.0.0.1`. */
const TLS: Readonly<Record<string, TlsCase>> = {
  "of a trusted authority": [trusting],
  "of another authority": [({ otherAuthority }) => ({ ca: otherAuthority.certFile }), SELF_SIGNED],
  "without an authority": [() => ({}), SELF_SIGNED],
  "of another name": [trusting, /altnames: IP: 127.0.0.1 is not in the cert's list: $/, "elsewhere"],
  "of the expected name": [
    (all) => ({ ...trusting(all), san: "elsewhere.test" }),
    undefined,
    "elsewhere",
  ],
  "of the address where a name is expected": [
    (all) => ({ ...trusting(all), san: "elsewhere.test" }),
    /Host: elsewhere.test. is not in the cert's altnames: DNS:localhost, IP Address:127.0.0.1$/,
  ],
  "for a certificate": [
    (all) => ({ ...trusting(all), cert: all.client.certFile, key: all.client.keyFile }),
    undefined,
    ASKS,
  ],
  "for a certificate that is not shown": [trusting, /./, ASKS],
  "for a certificate of another authority": [
    (all) => ({ ...trusting(all), cert: all.otherClient.certFile, key: all.otherClient.keyFile }),
    /./,
    ASKS,
  ],
  "without one of a pair": [
    (all) => ({ ...trusting(all), cert: all.client.certFile }),
    /^Cannot use CONFIG_GRPC_XDS_CLIENT_TLS_CERT and CONFIG_GRPC_XDS_CLIENT_TLS_KEY: one of them is not set/,
  ],
  "with a file that is missing": [
    () => ({ ca: "/no/such/file" }),
    /^Cannot use CONFIG_GRPC_XDS_SERVER_TLS_CACERT "\/no\/such\/file": .*expected .*$/,
  ],
};

/** Server credentials from files; clients have to show a certificate where an authority is named. */
async function serverCredentials(
  { certFile, keyFile }: CertificateFiles,
  { authority }: Certificates,
  asks: boolean,
): Promise<ServerCredentials> {
  const [ca, cert, key] = await Promise.all(
    [authority.certFile, certFile, keyFile].map(async (path) => Buffer.from(await Deno.readFile(path))),
  );
  if (ca === undefined || cert === undefined || key === undefined) throw new Error("Cannot read: no files");
  return ServerCredentials.createSsl(ca, [{ cert_chain: cert, private_key: key }], asks);
}

for (const [name, [files, end, manner]] of Object.entries(TLS)) {
  Deno.test({
    ...needs(["openssl"], `xds stream: TLS ${name} is ${end === undefined ? "taken" : "refused"}`),
    async fn() {
      await using all = await makeCertificates();
      const own = manner === "elsewhere" ? all.elsewhere : all.server;
      const credentials = await serverCredentials(own, all, manner === ASKS);
      await using server = await XdsServer.start({ credentials });
      server.set("1", shopConfig({}));
      await using peer = new Peer(server.url, { tls: files(all) });
      const outcome = await until("an outcome", () => peer.versions[0] ?? peer.ends[0]);
      if (end === undefined) assertEquals([outcome, peer.ends], ["1", []]);
      else assertMatch(outcome, end);
    },
  });
}

Deno.test({
  ...needs(
    ["openssl"],
    "xds stream: certificates are read for each stream, and unusable ones keep their last good content",
  ),
  async fn() {
    await using all = await makeCertificates();
    const credentials = await serverCredentials(all.server, all, true);
    await using server = await XdsServer.start({ credentials });
    server.set("1", shopConfig({}));
    const { certFile: cert, keyFile: key } = await all.issue("swapped", { byOther: true });
    const tls = { ca: all.authority.certFile, cert, key };
    await using before = new Peer(server.url, { tls });
    await before.end();
    await all.issue("swapped");
    await using after = new Peer(server.url, { tls });
    await until("the first version", () => after.versions.length === 1);
    await Deno.truncate(cert);
    await Deno.remove(key);
    const logger = new RecordedLogger();
    await using kept = new Peer(server.url, { tls, logger });
    assertEquals(await until("an outcome", () => kept.versions[0] ?? kept.ends[0]), "1");
  },
});
