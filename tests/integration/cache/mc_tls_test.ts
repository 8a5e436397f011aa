import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import type { TlsFiles } from "../../../src/cache/tls_files.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { type Memcached, startMemcached } from "../../harness/memcached.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { withMc } from "../../harness/mc_bed.ts";

interface TlsCase {
  readonly name: string;
  readonly files: (certificates: Certificates) => Omit<TlsFiles, "settings">;
  readonly server?: "server" | "elsewhere";
  /** Why there is no connection; absent where there is one. */
  readonly refused?: RegExp;
}

const TLS_CASES: readonly TlsCase[] = [
  {
    name: "the right authority and certificate",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client }),
  },
  {
    name: "an authority that did not sign the server's certificate",
    files: ({ otherAuthority, client }) => ({ authorityFile: otherAuthority.certFile, ...client }),
    refused: /certificate|issuer|authority/i,
  },
  {
    name: "only the system's authorities",
    files: ({ client }) => client,
    refused: /certificate|issuer|authority/i,
  },
  {
    name: "a name that is not the server's",
    server: "elsewhere",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client }),
    refused: /altnames|name|certificate/i,
  },
  {
    name: "a name that is not the server's and is not looked at",
    server: "elsewhere",
    files: ({ authority, client }) => ({ authorityFile: authority.certFile, ...client, skipHostname: true }),
  },
  {
    name: "a name that is not looked at and a chain that is not the authority's",
    files: ({ otherAuthority, client }) => ({
      authorityFile: otherAuthority.certFile,
      ...client,
      skipHostname: true,
    }),
    refused: /certificate|issuer|authority/i,
  },
  {
    name: "no certificate of its own",
    files: ({ authority }) => ({ authorityFile: authority.certFile }),
    refused: /./,
  },
  {
    name: "a certificate that the server does not trust",
    files: ({ authority, otherClient }) => ({ authorityFile: authority.certFile, ...otherClient }),
    refused: /./,
  },
  {
    name: "an authority's file that is not there",
    files: ({ folder, client }) => ({ authorityFile: `${folder}/none.pem`, ...client }),
    refused: /^Cannot use MC_TLS_CACERT ".*none\.pem": /,
  },
];

async function withTls(
  server: "server" | "elsewhere",
  run: (memcached: Memcached, certificates: Certificates) => Promise<void>,
): Promise<void> {
  await using certificates = await makeCertificates();
  const tls = { ...certificates[server], authorityFile: certificates.authority.certFile };
  await using memcached = await startMemcached({ tls });
  await run(memcached, certificates);
}

for (const { name, files, server = "server", refused } of TLS_CASES) {
  Deno.test({
    ...needs(["memcached", "openssl"], `mc tls: with ${name}`),
    fn: () =>
      withTls(server, async ({ port }, certificates) => {
        const told: [boolean, string][] = [];
        await withMc([port], {
          tls: { settings: "MC_TLS", ...files(certificates) },
          onConnection: (connected, reason) => void told.push([connected, reason]),
        }, async (cache) => {
          await until("the first attempt", () => told.length > 0);
          const [connected, reason = ""] = told[0] ?? [];
          assertEquals([connected, reason], [refused === undefined, refused === undefined ? "" : reason]);
          if (refused === undefined) assertEquals(await cache.add([hit()]), [1]);
          else {
            assertMatch(reason, refused);
            await assertRejects(() => cache.add([hit()]));
          }
        });
      }),
  });
}

Deno.test({
  ...needs(
    ["memcached", "openssl"],
    "mc tls: files are read anew at each connect, and unusable ones keep their last good content",
  ),
  fn: () =>
    withTls("server", async (memcached, certificates) => {
      const { folder, authority, client, otherClient } = certificates;
      const files = { certFile: `${folder}/now.pem`, keyFile: `${folder}/now.key` };
      const use = async (from: typeof client) => {
        await Deno.copyFile(from.certFile, files.certFile);
        await Deno.copyFile(from.keyFile, files.keyFile);
      };
      await use(otherClient);
      const told: boolean[] = [];
      await withMc([memcached.port], {
        tls: { settings: "MC_TLS", authorityFile: authority.certFile, ...files },
        onConnection: (connected) => void told.push(connected),
      }, async (cache) => {
        await until("the refusal", () => told.length > 0);
        await use(client);
        await until("the connection", () => cache.connected);
        assertEquals([told, await cache.add([hit()])], [[false, true], [1]]);
        await Deno.remove(files.certFile);
        await Deno.truncate(files.keyFile);
        await memcached.restartOnSamePort();
        // The server that was started anew has no counters.
        assertEquals(await until("the connection again", () => cache.add([hit()])), [1]);
      });
    }),
});
