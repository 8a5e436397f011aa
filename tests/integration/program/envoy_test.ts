import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { validateEnvoyConfig } from "../../harness/envoy.ts";
import { EnvoyBed, type EnvoyPlaces } from "../../harness/envoy_bed.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { ServeFixture, type ServeFixtureOptions } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const DOMAIN = "edge";

// A day, so that no window ends between two requests of a case; each case has its own path.
function rules(changed: number): string {
  const limits = { limited: 3, own: 1, changed, failing: 1 };
  const entry = (path: string, limit: number) =>
    `  - key: path\n    value: /${path}\n    rate_limit: { unit: day, requests_per_unit: ${limit} }\n`;
  return `domain: ${DOMAIN}
descriptors:
${Object.entries(limits).map(([path, limit]) => entry(path, limit)).join("")}${
    entry("shadow", 1)
  }    shadow_mode: true
`;
}

Deno.test({
  ...needs(["envoy"], "Envoy accepts the configuration of these tests"),
  async fn() {
    const config = envoyConfig({ weir: "127.0.0.1:8081", upstream: "127.0.0.1:8080", domain: DOMAIN });
    assertEquals(await validateEnvoyConfig(config), "");
  },
});

const CASES: Readonly<Record<string, (bed: EnvoyBed, engine: string) => Promise<void>>> = {
  async "lets requests through under the limit, answers 429 over it, and tells when the window ends"(bed) {
    const seen = [];
    for (let call = 1; call <= 4; call++) seen.push(await get(bed, "allow", "/limited"));
    assertEquals(seen, [
      { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "2", limited: null },
      { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "1", limited: null },
      { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "0", limited: null },
      { status: 429, body: "", limit: "3, 3;w=86400", remaining: "0", limited: "true" },
    ]);
    const response = await bed.fetch("allow", "/limited");
    await response.body?.cancel();
    assertMatch(response.headers.get("x-ratelimit-reset") ?? "", /^[1-9][0-9]*$/);
  },
  async "passes Weir's own response headers on to the client"(bed) {
    const seen = [];
    for (let call = 1; call <= 2; call++) {
      const { status, headers, body } = await bed.fetch("allow", "/own");
      await body?.cancel();
      assertMatch(headers.get("ratelimit-reset") ?? "", /^[0-9]+$/);
      seen.push([status, headers.get("ratelimit-limit"), headers.get("ratelimit-remaining")]);
    }
    assertEquals(seen, [[200, "1", "0"], [429, "1", "0"]]);
  },
  async "lets everything through under a rule in shadow mode"(bed) {
    const seen = [];
    for (let call = 1; call <= 3; call++) seen.push((await get(bed, "allow", "/shadow")).status);
    assertEquals(seen, [200, 200, 200]);
  },
  async "follows a rule that was changed on disk"(bed) {
    assertEquals((await get(bed, "allow", "/changed")).limit, "2, 2;w=86400");
    await Deno.writeTextFile(join(bed.weir.rulesFolder, "rules.yaml"), rules(1_000));
    const seen = await until("the new limit", async () => {
      const answer = await get(bed, "allow", "/changed");
      return answer.limit === "1000, 1000;w=86400" && answer;
    });
    assertEquals(seen.status, 200);
  },
  async "decides by its failure mode while Weir is gone, and Weir limits again once it is back"(bed, engine) {
    assertEquals((await get(bed, "deny", "/failing")).status, 200);
    assertEquals((await get(bed, "deny", "/failing")).status, 429);
    const { grpc } = bed.weir.running.addresses;
    await bed.weir[Symbol.asyncDispose]();
    // Nothing was counted: the headers of a limit are missing.
    const { status, limit } = await get(bed, "allow", "/failing");
    assertEquals({ status, limit }, { status: 200, limit: null });
    assertEquals((await get(bed, "deny", "/failing")).status, 500);
    bed.weir = await ServeFixture.start(served(engine, grpc.split(":").at(-1)));
    await until(
      "calls to be limited again",
      async () => (await get(bed, "deny", "/failing")).status === 429,
    );
    assertEquals((await get(bed, "allow", "/failing")).status, 429);
  },
};

for (const engine of ["grpc-js", "native"]) {
  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy`),
    async fn(test) {
      const config = (places: EnvoyPlaces) => envoyConfig({ ...places, domain: DOMAIN });
      await using bed = await EnvoyBed.start({ ...served(engine), config });
      for (const [title, run] of Object.entries(CASES)) await test.step(title, () => run(bed, engine));
    },
  });
}

/** The parts of an answer that these tests compare. */
async function get(bed: EnvoyBed, listener: "allow" | "deny", path: string) {
  const response = await bed.fetch(listener, path);
  const header = (name: string) => response.headers.get(name);
  return {
    status: response.status,
    body: await response.text(),
    limit: header("x-ratelimit-limit"),
    remaining: header("x-ratelimit-remaining"),
    limited: header("x-envoy-ratelimited"),
  };
}

function served(engine: string, port = "0"): ServeFixtureOptions {
  const env = { GRPC_ENGINE: engine, GRPC_PORT: port, LIMIT_RESPONSE_HEADERS_ENABLED: "true" };
  return { env, rules: { "rules.yaml": rules(2) } };
}
