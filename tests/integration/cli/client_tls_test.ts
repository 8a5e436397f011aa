import { assertEquals } from "#assert";
import { createSecureServer } from "node:http2";
import { type AddressInfo, connect as connectSocket, createServer } from "node:net";
import { join } from "node:path";
import { ServerChecks } from "../../../src/cache/server_checks.ts";
import { openMcConnection } from "../../../src/cache/mc/connection.ts";
import { parseKvAddress } from "../../../src/cache/kv/address.ts";
import { KvConnections } from "../../../src/cache/kv/connections.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { errorText } from "../../../src/base/error_text.ts";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { openXdsStream } from "../../../src/config/xds_stream.ts";
import { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";
import { ran } from "../../harness/administration_fixture.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { needs } from "../../harness/tools.ts";

interface Case {
  /** The name of the certificate of the server, and its dates. */
  readonly server: (certificates: Certificates) => Promise<{ certFile: string; keyFile: string }>;
  readonly byOther?: boolean;
  readonly expected: RegExp;
}

const LOCAL = { names: "DNS:localhost,IP:127.0.0.1" };
const EXPIRED = /the certificate expired on 2024-02-01T00:00:00\.000Z \(CERT_HAS_EXPIRED\)$/;
const CASES: Readonly<Record<string, Case>> = {
  "an expired certificate": {
    server: (certificates) => certificates.issue("past", { ...LOCAL, dates: ["20240101", "20240201"] }),
    expected: EXPIRED,
  },
  "an expired certificate of another authority": {
    server: (certificates) => certificates.issue("past", { ...LOCAL, dates: ["20240101", "20240201"] }),
    byOther: true,
    expected: EXPIRED,
  },
  "a certificate of the future": {
    server: (certificates) => certificates.issue("future", { ...LOCAL, dates: ["20990101", "20990201"] }),
    expected: /the certificate is not valid before 2099-01-01T00:00:00\.000Z \(CERT_NOT_YET_VALID\)$/,
  },
  "another name": {
    server: ({ elsewhere }) => Promise.resolve(elsewhere),
    expected: /does not match certificate's altnames: .*elsewhere\.test/,
  },
  "another authority": {
    server: ({ server }) => Promise.resolve(server),
    byOther: true,
    expected: /unable to verify the first certificate: it is not issued by a trusted authority$/,
  },
};

/** The error of a connection to a server, by who connects. */
const CLIENTS: Readonly<Record<string, (port: number, caFile: string) => Promise<string>>> = {
  async client(port, caFile) {
    const call = ["--domain", "a", "--descriptors", "a=b", "--timeout", "60s"];
    const to = ["--tls", "--ca", caFile, "--dial_string", `localhost:${port}`];
    return (await ran(["client", ...to, ...call])).stderr.trim();
  },
  xds(port, caFile) {
    const target = {
      url: `localhost:${port}`,
      headers: new Map(),
      tls: { ca: caFile },
      maxMessageBytes: 1_000,
      clock: systemClock,
      logger: new RecordedLogger(),
    };
    return new Promise((resolve) => void openXdsStream(target, { onMessage() {}, onEnd: resolve }));
  },
  async mc(port, authorityFile) {
    const tls = { settings: "MC_TLS", authorityFile } as const;
    const checks = new ServerChecks();
    const options = {
      address: { host: "localhost", port },
      tls,
      timeoutMs: 60_000,
      clock: systemClock,
      checks,
    };
    const opening = openMcConnection(options, () => {}, new AbortController().signal);
    return await opening.then(() => "connected", errorText);
  },
  async kv(port, authorityFile) {
    const address = parseKvAddress("single", `rediss://localhost:${port}`, {
      socketType: "tcp",
      auth: undefined,
      sentinelAuth: undefined,
      tls: true,
      setting: "KV_URL",
    });
    const tls = { settings: "KV_TLS", authorityFile } as const;
    const shared = { timeoutMs: 60_000, clock: systemClock, random: Math.random };
    const connections = new KvConnections({ ...shared, address, tls });
    const opening = connections.server().open(() => {}, new AbortController().signal);
    return await opening.then(() => "connected", errorText);
  },
  async postgres(port, caFile) {
    // The request for TLS is answered before the two are brought together.
    const relay = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        const upstream = connectSocket(port, "localhost");
        upstream.on("error", () => {});
        socket.write("S");
        socket.pipe(upstream).pipe(socket);
      });
    });
    await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
    const host = { host: "localhost", port: (relay.address() as AddressInfo).port };
    const address = parsePostgresAddress(
      `postgres://u:p@localhost:${host.port}/d?sslmode=verify-full&sslrootcert=${caFile}`,
    );
    const timeouts = { connectTimeoutMs: 60_000, statementTimeoutMs: 60_000, lockTimeoutMs: 60_000 };
    try {
      await PostgresConnection.open(address, host, { clock: systemClock, ...timeouts });
      return "connected";
    } catch (error) {
      return errorText(error);
    } finally {
      relay.close();
    }
  },
};

for (const [what, { server, byOther, expected }] of Object.entries(CASES)) {
  for (const [who, connect] of Object.entries(CLIENTS)) {
    Deno.test({
      ...needs(["openssl"], `TLS: ${who} names the cause: ${what}`),
      // Destroyed sockets close later.
      sanitizeOps: false,
      sanitizeResources: false,
      async fn() {
        await using certificates = await makeCertificates();
        const { certFile, keyFile } = await server(certificates);
        const pem = { cert: await Deno.readTextFile(certFile), key: await Deno.readTextFile(keyFile) };
        const listening = createSecureServer(pem);
        listening.on("tlsClientError", () => {});
        listening.on("sessionError", () => {});
        await new Promise<void>((resolve) => listening.listen(0, () => resolve()));
        try {
          const { authority, otherAuthority } = certificates;
          const { certFile: ca } = byOther === true ? otherAuthority : authority;
          const text = await connect((listening.address() as AddressInfo).port, ca);
          assertEquals([expected.test(text), text.includes(join(certificates.folder))], [true, false], text);
        } finally {
          await new Promise<void>((resolve) => listening.close(() => resolve()));
        }
      },
    });
  }
}
