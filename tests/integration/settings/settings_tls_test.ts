import { assertEquals, assertMatch, assertRejects } from "#assert";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { replaceText, TlsPeer } from "../grpc/tls_bed.ts";
import { HttpsClient } from "../http/https_fixture.ts";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { eventually } from "../../harness/until.ts";
import { type Env, noon, sharedTests, startShop, statusOf, tried } from "./settings_bed.ts";

/** A cache whose server shows a certificate of another name, and asks for one. */
interface TlsCache {
  readonly prefix: "KV" | "MC";
  readonly gauge: string;
  readonly url: string;
  /** Settings with its address. */
  readonly env: Env;
}

async function startCaches(certificates: Certificates, stack: AsyncDisposableStack): Promise<TlsCache[]> {
  const { elsewhere, authority: { certFile: authorityFile } } = certificates;
  const redis = stack.use(await startRedis({ tls: certificates.redisTls(elsewhere) }));
  const memcached = stack.use(await startMemcached({ tls: { ...elsewhere, authorityFile } }));
  const [KV_URL, MC_HOST_PORT] = [redis.tlsUrl, memcached.url];
  return [{
    prefix: "KV",
    gauge: "ratelimit.kv_pool.cx_active",
    url: KV_URL,
    // Each handshake is work.
    env: { BACKEND_TYPE: "kv", KV_URL, KV_POOL_SIZE: "1" },
  }, {
    prefix: "MC",
    gauge: "ratelimit.mc.cx_active",
    url: MC_HOST_PORT,
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT },
  }];
}

sharedTests({
  of: "TLS",
  tools: ["redis-server", "memcached", "openssl"],
  async start(stack) {
    const certificates = stack.use(await makeCertificates());
    return { certificates, caches: await startCaches(certificates, stack) };
  },
  steps: {
    "KV_TLS…, MC_TLS…: a cache is reached with all of them, and not without any of them": async (
      { certificates: { authority, client, otherClient }, caches },
    ) => {
      for (const { prefix, gauge, url, env } of caches) {
        const all: Env = {
          [`${prefix}_TLS`]: "true",
          [`${prefix}_TLS_CACERT`]: authority.certFile,
          [`${prefix}_TLS_SKIP_HOSTNAME_VERIFICATION`]: "true",
          [`${prefix}_TLS_CLIENT_CERT`]: client.certFile,
          [`${prefix}_TLS_CLIENT_KEY`]: client.keyFile,
        };
        const changes: readonly Env[] = [
          {},
          { [`${prefix}_TLS`]: "" },
          { [`${prefix}_TLS_CACERT`]: "" },
          { [`${prefix}_TLS_SKIP_HOSTNAME_VERIFICATION`]: "" },
          { [`${prefix}_TLS_CLIENT_CERT`]: "", [`${prefix}_TLS_CLIENT_KEY`]: "" },
          { [`${prefix}_TLS_CLIENT_KEY`]: otherClient.keyFile },
        ];
        const statuses = [];
        for (const change of changes) {
          await using service = await startShop({ ...env, ...all, ...change }, noon(8));
          await tried(service, gauge, url);
          statuses.push(await statusOf(service, "open=a"));
        }
        assertEquals(statuses, [200, 503, 503, 503, 503, 503], prefix);
      }
    },
    "KV_PERSECOND_TLS: TLS with the second cache and not with the first, whose files it shares": async (
      { certificates },
    ) => {
      await using main = await startRedis();
      await using second = await startRedis({ tls: certificates.redisTls() });
      const { authority, client } = certificates;
      const statuses = [];
      for (const KV_PERSECOND_TLS of ["", "true"]) {
        await using service = await startShop({
          BACKEND_TYPE: "kv",
          KV_URL: main.url,
          KV_TLS_CACERT: authority.certFile,
          KV_TLS_CLIENT_CERT: client.certFile,
          KV_TLS_CLIENT_KEY: client.keyFile,
          KV_PERSECOND: "true",
          KV_PERSECOND_URL: second.tlsUrl,
          KV_PERSECOND_TLS,
        });
        await tried(service, "ratelimit.kv_per_second_pool.cx_active", second.tlsUrl);
        statuses.push(await statusOf(service, "quick=a"), await statusOf(service, "open=a"));
      }
      assertEquals(statuses, [503, 200, 200, 200]);
    },
    "GRPC_SERVER_TLS_CERT, …_KEY, GRPC_CLIENT_TLS_CACERT, …_SAN: which clients are served": async (
      { certificates },
    ) => {
      const { server, authority, client, otherClient } = certificates;
      const named = await certificates.issue("named", { names: "DNS:proxy.test" });
      const pair = {
        GRPC_SERVER_USE_TLS: "true",
        GRPC_SERVER_TLS_CERT: server.certFile,
        GRPC_SERVER_TLS_KEY: server.keyFile,
      };
      const asking = { ...pair, GRPC_CLIENT_TLS_CACERT: authority.certFile };
      const seen = [];
      for (const env of [{}, pair, asking, { ...asking, GRPC_CLIENT_TLS_SAN: "proxy.test" }]) {
        await using service = await startShop(env);
        for (const one of [named, client, otherClient, undefined]) {
          seen.push(await isWelcome(service, certificates, one));
        }
      }
      const [yes, no] = [true, false];
      assertEquals(seen, [no, no, no, no, yes, yes, yes, yes, yes, yes, no, no, yes, no, no, no]);
      const { message } = await assertRejects(() =>
        startShop({ ...pair, GRPC_SERVER_TLS_KEY: client.keyFile })
      );
      const told = /^Cannot use GRPC_SERVER_TLS_KEY ".*client\.key": it is not the key of .*; expected .*$/;
      assertMatch(message, told);
    },
  },
});

/** A clock on which a pair that does not fit is given no two seconds before it counts as bad. */
const HASTY: Clock = { ...systemClock, elapsed: () => systemClock.elapsed() * 100 };

Deno.test({
  ...needs(
    ["openssl"],
    "HTTP_SERVER_TLS_CERT, …_KEY: a key of another certificate refused, then taken with its own",
  ),
  async fn() {
    await using certificates = await makeCertificates();
    const { server, authority, otherAuthority } = certificates;
    const names = "DNS:localhost,IP:127.0.0.1";
    const renewed = await certificates.issue("renewed", { names, byOther: true });
    const env = {
      HTTP_SERVER_USE_TLS: "true",
      HTTP_SERVER_TLS_CERT: server.certFile,
      HTTP_SERVER_TLS_KEY: server.keyFile,
    };
    await using service = await ServeFixture.start({ env, clock: HASTY });
    const port = Number(service.httpAddress.split(":").at(-1));
    using former = new HttpsClient(port, await Deno.readTextFile(authority.certFile));
    using next = new HttpsClient(port, await Deno.readTextFile(otherAuthority.certFile));
    const seen = async () => {
      const stats = await service.stats();
      const counts = ["reloaded", "reload_failed"].map((name) => stats[`ratelimit.process.http_tls_${name}`]);
      return [await former.trusts(), await next.trusts(), ...counts];
    };
    await replaceText(server.keyFile, await Deno.readTextFile(renewed.keyFile));
    await eventually([true, false, 0, 1], seen);
    const lines = service.log.filter((line) => line.includes("HTTP_SERVER_TLS_KEY"));
    assertEquals(lines.length, 1);
    assertMatch(
      lines.join(),
      /Cannot use HTTP_SERVER_TLS_KEY .*: it is not the key of the first certificate/,
    );
    await replaceText(server.certFile, await Deno.readTextFile(renewed.certFile));
    // For a moment new connections meet either of the pairs.
    await eventually([false, true, 1, 1], seen);
  },
});

/** True if a client with this certificate, or with none, is served on the gRPC port. */
async function isWelcome(
  service: ServeFixture,
  { authority }: Certificates,
  client?: CertificateFiles,
): Promise<boolean> {
  const [host = "", port = ""] = service.grpcAddress.split(":");
  const text = (path: string) => Deno.readTextFile(path);
  const own = client === undefined
    ? {}
    : { cert: await text(client.certFile), key: await text(client.keyFile) };
  await using peer = await TlsPeer.connect({
    ...own,
    host,
    port: Number(port),
    ca: await text(authority.certFile),
    ALPNProtocols: ["h2"],
    // The name is not what is looked at here.
    checkServerIdentity: () => undefined,
  });
  return peer.isWelcome;
}
