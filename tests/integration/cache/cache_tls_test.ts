import { assertEquals, assertMatch, assertRejects } from "#assert";
import { join } from "node:path";
import type { TlsFiles } from "../../../src/cache/tls_files.ts";
import type { CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import type { CacheServer } from "../../harness/cache_server.ts";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { openMc } from "../../harness/mc_bed.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { openKvCache } from "../../harness/open_kv.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { takeCounts } from "../../harness/take.ts";

type Told = (connected: boolean, reason: string) => void;

/** A server that asks its clients for certificates, and caches over it. */
interface Served extends AsyncDisposable {
  readonly server: CacheServer;
  open(files: Omit<TlsFiles, "settings">, onConnection: Told): CounterCache & { readonly connected: boolean };
}

/** A server with a certificate for each back end. */
const BACK_ENDS = {
  kv: {
    tools: ["redis-server", "openssl"],
    async serve(certificates: Certificates, certificate: CertificateFiles): Promise<Served> {
      const server = await startRedis({ tls: certificates.redisTls(certificate) });
      return {
        server,
        open: (files, onConnection) =>
          openKvCache(server.tlsUrl, {
            tls: true,
            tlsFiles: { settings: "KV_TLS", ...files },
            onConnection,
            poolSize: 1,
          }),
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    },
  },
  mc: {
    tools: ["memcached", "openssl"],
    async serve({ authority }: Certificates, certificate: CertificateFiles): Promise<Served> {
      const server = await startMemcached({ tls: { ...certificate, authorityFile: authority.certFile } });
      return {
        server,
        open: (files, onConnection) =>
          openMc([server.port], {
            tls: { settings: "MC_TLS", ...files },
            onConnection,
            maxIdleConnections: 1,
          }),
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    },
  },
} as const;

interface TlsCase {
  readonly name: string;
  readonly server?: "server" | "elsewhere";
  readonly files: (certificates: Certificates) => Omit<TlsFiles, "settings">;
  /** Why there is no connection; absent where there is one. */
  readonly refused?: RegExp;
}

const UNTRUSTED = /self-signed certificate|unable to (?:verify|get local issuer)/;
/** A server that refuses a certificate may close before its reason is read. */
const REFUSED_CLIENT = /CertificateRequired|UnknownCA|EPIPE|ECONNRESET|closed/;

const CASES: readonly TlsCase[] = [
  {
    name: "the right authority and certificate",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client }),
  },
  {
    name: "an authority that did not sign the server's certificate",
    files: ({ otherAuthority, client }) => ({ authorityFile: otherAuthority.certFile, ...client }),
    refused: UNTRUSTED,
  },
  { name: "only the system's authorities", files: ({ client }) => client, refused: UNTRUSTED },
  {
    name: "a name that is not the server's",
    server: "elsewhere",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client }),
    refused: /does not match certificate's altnames/,
  },
  {
    name: "a name that is not the server's and is not looked at",
    server: "elsewhere",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client, skipHostname: true }),
  },
  {
    name: "a name that is not looked at and a chain that is not the authority's",
    server: "elsewhere",
    files: ({ otherAuthority, client }) => ({
      authorityFile: otherAuthority.certFile,
      ...client,
      skipHostname: true,
    }),
    refused: UNTRUSTED,
  },
  {
    name: "no client certificate",
    files: ({ authority }) => ({ authorityFile: authority.certFile }),
    refused: REFUSED_CLIENT,
  },
  {
    name: "a certificate that the server does not trust",
    files: ({ authority, otherClient }) => ({ authorityFile: authority.certFile, ...otherClient }),
    refused: REFUSED_CLIENT,
  },
  {
    name: "an authority's file that is not there",
    files: ({ folder, client }) => ({ authorityFile: `${folder}/none.pem`, ...client }),
    refused: /^Cannot use (?:KV|MC)_TLS_CACERT ".*none\.pem": /,
  },
];

for (const [kind, { tools, serve }] of Object.entries(BACK_ENDS)) {
  for (const { name, server = "server", files, refused } of CASES) {
    Deno.test({
      ...needs(tools, `${kind} over TLS: with ${name}`),
      async fn() {
        await using certificates = await makeCertificates();
        await using served = await serve(certificates, certificates[server]);
        await using owned = new AsyncDisposableStack();
        const told: [boolean, string][] = [];
        const cache = served.open(files(certificates), (...one) => void told.push(one));
        owned.defer(() => cache.close());
        await until("the first attempt", () => told.length > 0);
        const [connected, reason = ""] = told[0] ?? [];
        assertEquals(connected, refused === undefined);
        if (refused === undefined) return assertEquals(await takeCounts(cache, [hit()]), [1]);
        assertMatch(reason, refused);
        await assertRejects(async () => await takeCounts(cache, [hit()]));
      },
    });
  }

  Deno.test({
    ...needs(
      tools,
      `${kind} over TLS: files are read anew at each connect, and unusable ones keep their last good content`,
    ),
    async fn() {
      await using certificates = await makeCertificates();
      await using served = await serve(certificates, certificates.server);
      await using owned = new AsyncDisposableStack();
      const { folder, authority, client, otherClient } = certificates;
      const files = { certFile: join(folder, "shown.pem"), keyFile: join(folder, "shown.key") };
      const show = async (from: CertificateFiles) => {
        await Deno.copyFile(from.certFile, files.certFile);
        await Deno.copyFile(from.keyFile, files.keyFile);
      };
      const told: string[] = [];
      const cache = served.open(
        { authorityFile: authority.certFile, ...files },
        (_, reason) => void told.push(reason),
      );
      owned.defer(() => cache.close());
      await until("the first attempt", () => told.length > 0);
      assertMatch(
        told[0] ?? "",
        /^Cannot use (?:KV|MC)_TLS_CLIENT_(?:CERT|KEY) ".*shown\.\w+": .*no such file/i,
      );
      const counts = async () => await Promise.resolve(takeCounts(cache, [hit()])).catch(() => []);
      await show(client);
      await eventually([1], counts);
      await Deno.remove(files.certFile);
      await Deno.truncate(files.keyFile);
      await served.server.restartOnSamePort();
      // The server that was started anew has no counters.
      await eventually([1], counts);
      await show(otherClient);
      await served.server.restartOnSamePort();
      await until("the other certificate to be refused", async () => {
        return REFUSED_CLIENT.test(
          (await assertRejects(async () => await takeCounts(cache, [hit()]))).message,
        );
      });
      assertEquals(cache.connected, false);
    },
  });
}
