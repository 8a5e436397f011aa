import { systemClock } from "../../../src/base/clock.ts";
import { parseKvAddress } from "../../../src/cache/kv/address.ts";
import { KvConnections } from "../../../src/cache/kv/connections.ts";

/**
 * A program of its own, because what it must not do is end: it connects to the address of its first
 * argument over TLS with the authority of its second, and says `ready` at the first connection that is, or
 * `refused` once five have been refused.
 */
async function run(url: string, authorityFile: string): Promise<string> {
  const connections = new KvConnections({
    address: parseKvAddress("single", url, { tls: true, auth: "user:secret" }),
    tls: { settings: "KV_TLS", authorityFile },
    timeoutMs: 30_000,
    clock: systemClock,
    random: () => 0,
  });
  const end = Promise.withResolvers<string>();
  let refusals = 0;
  const connection = connections.open({
    lost: () => ++refusals === 5 && end.resolve("refused"),
    ready: () => end.resolve("ready"),
  });
  const text = await end.promise;
  connection.close();
  return text;
}

if (import.meta.main) {
  const [url = "", authorityFile = ""] = Deno.args;
  const text = await run(url, authorityFile);
  await Deno.stdout.write(new TextEncoder().encode(`${text}\n`));
}
