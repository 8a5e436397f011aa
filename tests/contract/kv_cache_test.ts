import { makeCertificates } from "../harness/certificates.ts";
import { openKvCache as open } from "../harness/open_kv.ts";
import { startRedis } from "../harness/redis_server.ts";
import { counterCacheContract } from "./counter_cache_contract.ts";

for (const program of ["redis-server", "valkey-server"] as const) {
  counterCacheContract(`kv over TCP to ${program}`, async () => {
    const redis = await startRedis({ program });
    const cache = open(redis.url);
    await cache.ready;
    const stored = async (key: string) => String(await redis.command("GET", key) ?? "") || undefined;
    return { cache, stored, end: () => redis[Symbol.asyncDispose]() };
  }, { tools: [program] });
}

counterCacheContract("kv over a unix socket", async () => {
  const redis = await startRedis({ unixSocket: true });
  const cache = open(redis.socketPath ?? "");
  await cache.ready;
  return { cache, end: () => redis[Symbol.asyncDispose]() };
});

counterCacheContract("kv over TLS with a client certificate", async () => {
  const certificates = await makeCertificates();
  const redis = await startRedis({ tls: certificates.redisTls() });
  const { authority, client } = certificates;
  const tlsFiles = {
    settings: "KV_TLS",
    authorityFile: authority.certFile,
    certFile: client.certFile,
    keyFile: client.keyFile,
  } as const;
  const cache = open(redis.tlsUrl, { tls: true, tlsFiles });
  await cache.ready;
  const end = async () => {
    await redis[Symbol.asyncDispose]();
    await certificates[Symbol.asyncDispose]();
  };
  return { cache, end };
}, { tools: ["redis-server"] });
