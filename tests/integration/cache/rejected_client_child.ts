import { systemClock } from "../../../src/base/clock.ts";
import { parseKvAddress } from "../../../src/cache/kv/address.ts";
import { createKvClient } from "../../../src/cache/kv/connect.ts";

/**
 * A program of its own, because what it must not do is end: it connects to the address of its first
 * argument over TLS with the authority of its second, counts on every connection that it gets, and says
 * `ready` at the first that is, or `refused` once five have been refused.
 */
async function run(url: string, authorityFile: string): Promise<string> {
  const client = createKvClient({
    address: parseKvAddress("single", url, { tls: true, auth: "user:secret" }),
    tls: { settings: "KV_TLS", authorityFile },
    timeoutMs: 30_000,
    clock: systemClock,
    random: () => 0,
  });
  const end = Promise.withResolvers<string>();
  let refusals = 0;
  client.on("error", () => {});
  client.on("connect", () => void client.ping().catch(() => {}));
  client.on("close", () => ++refusals === 5 && end.resolve("refused"));
  client.on("ready", () => end.resolve("ready"));
  client.connect().catch(() => {});
  const text = await end.promise;
  client.disconnect();
  return text;
}

if (import.meta.main) {
  const [url = "", authorityFile = ""] = Deno.args;
  const text = await run(url, authorityFile);
  await Deno.stdout.write(new TextEncoder().encode(`${text}\n`));
}
