import { makeCertificates } from "../harness/certificates.ts";
import { openMc } from "../harness/mc_bed.ts";
import { type Memcached, startMemcached } from "../harness/memcached.ts";
import { counterCacheContract, type CounterCacheTraits } from "./counter_cache_contract.ts";

const TRAITS: CounterCacheTraits = {
  tools: ["memcached"],
  refusesKey: (key: string) => /[\0-\x20\x7f]/.test(key),
};

for (const servers of [1, 3]) {
  counterCacheContract(`mc over ${servers} node${servers > 1 ? "s" : ""}`, async () => {
    const started: Memcached[] = [];
    for (let count = 0; count < servers; count++) started.push(await startMemcached());
    const cache = openMc(started.map(({ port }) => port));
    await cache.ready;
    const [first] = started;
    const stored = async (key: string) => (await first?.value(key))?.trimEnd();
    return {
      cache,
      ...(servers === 1 ? { stored } : {}),
      async end() {
        for (const server of started) await server[Symbol.asyncDispose]();
      },
    };
  }, TRAITS);
}

counterCacheContract("mc with a digest of keys that it cannot hold", async () => {
  const server = await startMemcached();
  const cache = openMc([server.port], { digestPrefix: "" });
  await cache.ready;
  return { cache, end: () => server[Symbol.asyncDispose]() };
}, { tools: ["memcached"] });

counterCacheContract("mc over TLS with a client certificate", async () => {
  const certificates = await makeCertificates();
  const { server, client, authority: { certFile: authorityFile } } = certificates;
  const memcached = await startMemcached({ tls: { ...server, authorityFile } });
  const cache = openMc([memcached.port], { tls: { settings: "MC_TLS", authorityFile, ...client } });
  await cache.ready;
  return {
    cache,
    async end() {
      await memcached[Symbol.asyncDispose]();
      await certificates[Symbol.asyncDispose]();
    },
  };
}, TRAITS);
