import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { readSettings } from "../../../src/settings/read_settings.ts";
import type { CertificateFiles, Certificates } from "../../harness/certificates.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { type Tool, toolAvailable } from "../../harness/tools.ts";
import {
  compare,
  type Env,
  NOON,
  type SettingCase,
  type SettingCases,
  Shared,
  shopRequest,
  SLOW_NOON,
} from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";
import { PER_SECOND, REDIS_TLS, RULES, SHARED_REDIS, statusOnceTried, tried } from "./settings_kv_bed.ts";

/** A cache that speaks TLS. */
interface TlsCache {
  readonly prefix: "KV" | "MC";
  readonly tools: readonly Tool[];
  /** A gauge of its connections. */
  readonly gauge: string;
  /** Settings with its address. */
  envOf(url: string): Env;
}

/** Which certificate a server shows. */
type Shown = "server" | "elsewhere";
type Urls = Readonly<Record<TlsCache["prefix"], Readonly<Record<Shown, string>>>>;

const KV: TlsCache = {
  prefix: "KV",
  tools: REDIS_TLS,
  gauge: "ratelimit.kv_pool.cx_active",
  // Each handshake is work.
  envOf: (url) => ({ BACKEND_TYPE: "kv", KV_URL: url, KV_POOL_SIZE: "1" }),
};

const MC: TlsCache = {
  prefix: "MC",
  tools: ["memcached", "openssl"],
  gauge: "ratelimit.mc.cx_active",
  envOf: (url) => ({ BACKEND_TYPE: "mc", MC_HOST_PORT: url }),
};

/** Addresses of servers for clients that show a certificate of the authority. */
export const CACHES_WITH_TLS = new Shared<Urls>(["openssl"], async (stack) => {
  const certificates = CERTIFICATES.value;
  const { authority: { certFile: authorityFile }, server, elsewhere } = certificates;
  const redis = async (files: CertificateFiles) => {
    if (!toolAvailable("redis-server")) return "";
    return stack.use(await startRedis({ tls: certificates.redisTls(files) })).tlsUrl;
  };
  const memcached = async (files: CertificateFiles) => {
    if (!toolAvailable("memcached")) return "";
    return stack.use(await startMemcached({ tls: { ...files, authorityFile } })).url;
  };
  return {
    KV: { server: await redis(server), elsewhere: await redis(elsewhere) },
    MC: { server: await memcached(server), elsewhere: await memcached(elsewhere) },
  };
});

/** Tests of TLS to the caches. */
export const CACHE_TLS_CASES: SettingCases = {
  KV_TLS: tlsCase(KV, "TLS", "TLS spoken to the cache"),
  KV_TLS_CACERT: tlsCase(KV, "TLS_CACERT", "a certificate of this authority trusted"),
  KV_TLS_CLIENT_CERT: clientCertCase(KV),
  KV_TLS_CLIENT_KEY: clientKeyCase(KV),
  KV_TLS_SKIP_HOSTNAME_VERIFICATION: skipHostnameCase(KV),
  KV_PERSECOND_TLS: { sees: "TLS spoken to the second cache", tools: REDIS_TLS, run: speaksTlsToSecond },
  MC_TLS: tlsCase(MC, "TLS", "TLS spoken to the nodes"),
  MC_TLS_CACERT: tlsCase(MC, "TLS_CACERT", "a certificate of this authority trusted"),
  MC_TLS_CLIENT_CERT: clientCertCase(MC),
  MC_TLS_CLIENT_KEY: clientKeyCase(MC),
  MC_TLS_SKIP_HOSTNAME_VERIFICATION: skipHostnameCase(MC),
};

/** Calls are answered with this setting and not without it, when all others are as they should be. */
function tlsCase(cache: TlsCache, suffix: string, sees: string): SettingCase {
  const run = async () => {
    const certificates = CERTIFICATES.value;
    const { [`${cache.prefix}_${suffix}`]: value = "", ...env } = everything(cache, certificates);
    const changed = { [`${cache.prefix}_${suffix}`]: value };
    await answersOnlyWith(cache, { env, changed });
  };
  return { sees, tools: cache.tools, run };
}

/** `…_TLS_CLIENT_CERT`, which goes with its key or not at all. */
function clientCertCase(cache: TlsCache): SettingCase {
  const [cert, key] = [`${cache.prefix}_TLS_CLIENT_CERT`, `${cache.prefix}_TLS_CLIENT_KEY`];
  const run = async () => {
    const certificates = CERTIFICATES.value;
    const { [cert]: certFile = "", [key]: keyFile = "", ...env } = everything(cache, certificates);
    const alone = { ...env, KV_URL: "a:1", BACKEND_TYPE: cache.prefix.toLowerCase(), [cert]: certFile };
    assertMatch(assertThrows(() => readSettings(alone)).message, /_TLS_CLIENT_KEY is not set/);
    const changed = { [cert]: certFile, [key]: keyFile };
    await answersOnlyWith(cache, { env, changed });
  };
  return { sees: "a certificate shown to a server that wants one", tools: cache.tools, run };
}

/** `…_TLS_CLIENT_KEY`: any other one does not fit the certificate. */
function clientKeyCase(cache: TlsCache): SettingCase {
  const name = `${cache.prefix}_TLS_CLIENT_KEY`;
  const run = async () => {
    const certificates = CERTIFICATES.value;
    const { [name]: keyFile = "", ...right } = everything(cache, certificates);
    const env = { ...right, [name]: certificates.otherClient.keyFile };
    const changed = { [name]: keyFile };
    const log = await answersOnlyWith(cache, { env, changed });
    assertMatch(log.join("\n"), new RegExp(`${name} .*: it is not the key of`));
  };
  return { sees: "the key of the certificate", tools: cache.tools, run };
}

/** `…_TLS_SKIP_HOSTNAME_VERIFICATION`. */
function skipHostnameCase(cache: TlsCache): SettingCase {
  const run = async () => {
    const certificates = CERTIFICATES.value;
    const env = everything(cache, certificates);
    const changed = { [`${cache.prefix}_TLS_SKIP_HOSTNAME_VERIFICATION`]: "true" };
    await answersOnlyWith(cache, { shown: "elsewhere", env, changed });
  };
  return { sees: "a certificate with another name taken", tools: cache.tools, run };
}

/** What it takes to be answered. */
function everything({ prefix }: TlsCache, { authority, client }: Certificates): Env {
  return {
    [`${prefix}_TLS`]: "true",
    [`${prefix}_TLS_CACERT`]: authority.certFile,
    [`${prefix}_TLS_CLIENT_CERT`]: client.certFile,
    [`${prefix}_TLS_CLIENT_KEY`]: client.keyFile,
  };
}

interface TlsAttempt {
  readonly shown?: Shown;
  /** Settings of both services beside the address, and those that only one has. */
  readonly env: Env;
  readonly changed: Env;
}

/** Answers the log of the service that could not connect. */
async function answersOnlyWith(cache: TlsCache, attempt: TlsAttempt): Promise<readonly string[]> {
  const logs: (readonly string[])[] = [];
  const url = CACHES_WITH_TLS.value[cache.prefix][attempt.shown ?? "server"];
  await compare(attempt.changed, {
    env: { ...cache.envOf(url), ...attempt.env },
    clock: cache.prefix === "MC" ? SLOW_NOON : NOON,
    async look(service) {
      logs.push(service.log);
      await tried(service, cache.gauge, url);
      return (await service.ask(shopRequest("open=a"))).status;
    },
    unset: 503,
    set: 200,
  });
  return logs[0] ?? [];
}

async function speaksTlsToSecond(): Promise<void> {
  const certificates = CERTIFICATES.value;
  const main = SHARED_REDIS.value;
  await main.command("FLUSHALL");
  await using second = await startRedis({ tls: certificates.redisTls() });
  // The files are those of both; the main cache is spoken to without TLS all the same.
  const { KV_TLS: _, ...files } = everything(KV, certificates);
  await compare({ KV_PERSECOND_TLS: "true" }, {
    env: {
      BACKEND_TYPE: "kv",
      KV_URL: main.url,
      KV_PERSECOND_POOL_SIZE: "1",
      KV_PERSECOND: "true",
      KV_PERSECOND_URL: second.tlsUrl,
      ...files,
    },
    rules: RULES,
    async look(service) {
      const status = await statusOnceTried(service, PER_SECOND, second.tlsUrl);
      return [status, (await service.ask(shopRequest("open=a"))).status];
    },
    unset: [503, 200],
    set: [200, 200],
  });
  assertEquals([await main.command("DBSIZE"), await second.command("DBSIZE")], [1, 1]);
}
