import { assertEquals, assertMatch } from "@std/assert";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { Dialed } from "../../harness/http_fixture.ts";
import { HttpsClient } from "../http/https_fixture.ts";
import { compare, type Env, NOON, type SettingCases, SHOP, shopRequest } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";

const NAMES = "DNS:localhost,IP:127.0.0.1";
const RELOADED = "ratelimit.process.http_tls_reloaded";
const RELOAD_FAILED = "ratelimit.process.http_tls_reload_failed";

/** Tests of TLS and `/json` on the HTTP port, and of the token and the hosts of the debug port. */
export const HTTP_TLS_CASES: SettingCases = {
  HTTP_SERVER_USE_TLS: { sees: "HTTPS in place of HTTP", tools: ["openssl"], run: servesHttps },
  HTTP_SERVER_TLS_CERT: {
    sees: "the certificate of the file, and the next one as soon as it is there",
    tools: ["openssl"],
    run: takesNextPair,
  },
  HTTP_SERVER_TLS_KEY: {
    sees: "a key of another certificate refused, then taken with its certificate",
    tools: ["openssl"],
    run: keepsPairUntilItFits,
  },
  HTTP_MAX_CONNECTIONS: {
    sees: "a connection too many",
    run: () =>
      compare({ HTTP_MAX_CONNECTIONS: "1" }, {
        async look({ running: { addresses } }) {
          const dial = async () =>
            new Dialed(
              await Deno.connect({ hostname: "127.0.0.1", port: Number(addresses.http.split(":").at(-1)) }),
            );
          using first = await dial();
          // In the middle of a request: the next one would take the place of an idle one.
          await first.write("GET /livez HT");
          using second = await dial();
          await second.write("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").catch(() => {});
          return (await second.read().catch(() => "")).endsWith("OK");
        },
        unset: true,
        set: false,
      }),
  },
  HTTP_JSON: {
    sees: "decisions and what else the HTTP port serves",
    run: () =>
      compare({ HTTP_JSON: "false" }, {
        async look(service) {
          const at = (path: string) => `http://${service.running.addresses.http}${path}`;
          const decision = await fetch(at("/json"), {
            method: "POST",
            body: JSON.stringify(shopRequest("open=json")),
          });
          const health = await fetch(at("/healthcheck"));
          await Promise.all([decision.body?.cancel(), health.body?.cancel()]);
          return [decision.status, health.status];
        },
        unset: [200, 200],
        set: [404, 200],
      }),
  },
  DEBUG_ALLOWED_HOSTS: {
    sees: "the names by which the debug port answers",
    run: () =>
      compare({ DEBUG_ALLOWED_HOSTS: "weir.example, other.example" }, {
        async look({ running: { addresses } }) {
          const statuses: number[] = [];
          for (const host of ["weir.example", "OTHER.example.:6070", "evil.example"]) {
            statuses.push(await statusByHost(addresses.debug, host));
          }
          return statuses;
        },
        unset: [403, 403, 403],
        set: [200, 200, 403],
      }),
  },
  DEBUG_TOKEN: { sees: "pages for who has the token, paths and health for all", run: wantsToken },
};

async function servesHttps(): Promise<void> {
  const certificates = CERTIFICATES.value;
  assertEquals(await answers(certificates, {}), { https: [], http: [200, 200, 200], debug: [404, 200, 200] });
  assertEquals(
    await answers(certificates, tlsEnv(certificates.server)),
    { https: [200, 200, 200], http: [], debug: [404, 200, 200] },
  );
}

/** The status of each answer, by the way of asking; none where there is no answer. */
async function answers(certificates: Certificates, env: Env) {
  await using service = await ServeFixture.start({ env, rules: SHOP, clock: NOON });
  const { http, debug } = service.running.addresses;
  using client = await clientOf(service, certificates.authority);
  const body = JSON.stringify(shopRequest("open=1"));
  const askAll = async (ask: (path: string, init?: RequestInit) => Promise<Response>) => {
    const responses = [];
    for (const [path, init] of [["/json", { method: "POST", body }], ["/healthcheck"], ["/livez"]] as const) {
      const response = await ask(path, init).catch(() => undefined);
      await response?.body?.cancel();
      if (response !== undefined) responses.push(response.status);
    }
    return responses;
  };
  return {
    https: await askAll((path, init) => client.fetch(path, init)),
    http: await askAll((path, init) => fetch(`http://${http}${path}`, init)),
    // It has no decisions.
    debug: await askAll((path, init) => fetch(`http://${debug}${path}`, init)),
  };
}

async function takesNextPair(): Promise<void> {
  await using certificates = await makeCertificates();
  const { server, authority, otherAuthority } = certificates;
  const renewed = await certificates.issue("renewed", { names: NAMES, byOther: true });
  await using service = await ServeFixture.start({ env: tlsEnv(server), rules: SHOP });
  using former = await clientOf(service, authority);
  using next = await clientOf(service, otherAuthority);
  assertEquals([await former.trusts(), await next.trusts()], [true, false]);
  // Both at once for the service, which runs in this process.
  Deno.copyFileSync(renewed.keyFile, server.keyFile);
  Deno.copyFileSync(renewed.certFile, server.certFile);
  await until("the next pair to be served", () => next.trusts());
  // For a moment new connections meet either of them.
  await until("the former pair to be gone", async () => !await former.trusts());
  const stats = await service.stats();
  assertEquals([stats[RELOADED], stats[RELOAD_FAILED]], [1, 0]);
}

async function keepsPairUntilItFits(): Promise<void> {
  await using certificates = await makeCertificates();
  const { server, authority, otherAuthority } = certificates;
  const renewed = await certificates.issue("renewed", { names: NAMES, byOther: true });
  await using service = await ServeFixture.start({ env: tlsEnv(server), rules: SHOP });
  using former = await clientOf(service, authority);
  using next = await clientOf(service, otherAuthority);
  await Deno.copyFile(renewed.keyFile, server.keyFile);
  await until("the bad pair to be counted", async () => (await service.stats())[RELOAD_FAILED] === 1);
  const lines = service.log.filter((line) => line.includes("HTTP_SERVER_TLS_KEY"));
  assertEquals([await former.trusts(), await next.trusts(), lines.length], [true, false, 1]);
  assertMatch(lines.join(), /Cannot use HTTP_SERVER_TLS_KEY .*: it is not the key of the first certificate/);
  await Deno.copyFile(renewed.certFile, server.certFile);
  await until("the whole pair to be served", () => next.trusts());
  // For a moment new connections meet either of them.
  await until("the former pair to be gone", async () => !await former.trusts());
  const stats = await service.stats();
  assertEquals([stats[RELOADED], stats[RELOAD_FAILED]], [1, 1]);
}

async function statusByHost(address: string, host: string): Promise<number> {
  using raw = new Dialed(
    await Deno.connect({ hostname: "127.0.0.1", port: Number(address.split(":").at(-1)) }),
  );
  await raw.write(`GET /stats HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return Number((await raw.read()).split(" ")[1]);
}

async function wantsToken(): Promise<void> {
  const token = "correct-horse";
  const look = async (service: ServeFixture) => {
    const seen: number[] = [];
    for (
      const headers of [undefined, { authorization: "Bearer wrong" }, { authorization: `Bearer ${token}` }]
    ) {
      for (const path of ["/", "/livez", "/healthcheck", "/rlconfig"]) {
        const init = headers === undefined ? {} : { headers };
        const response = await fetch(`http://${service.running.addresses.debug}${path}`, init);
        await response.body?.cancel();
        seen.push(response.status);
      }
    }
    return { seen, told: service.log.some((line) => line.includes(token)) };
  };
  const open = [200, 200, 200];
  await compare({ DEBUG_TOKEN: token }, {
    look,
    unset: { seen: [...open, 200, ...open, 200, ...open, 200], told: false },
    set: { seen: [...open, 401, ...open, 401, ...open, 200], told: false },
  });
}

function tlsEnv({ certFile, keyFile }: CertificateFiles): Env {
  return { HTTP_SERVER_USE_TLS: "true", HTTP_SERVER_TLS_CERT: certFile, HTTP_SERVER_TLS_KEY: keyFile };
}

async function clientOf(service: ServeFixture, { certFile }: CertificateFiles): Promise<HttpsClient> {
  const port = Number(service.running.addresses.http.split(":").at(-1));
  return new HttpsClient(port, await Deno.readTextFile(certFile));
}
