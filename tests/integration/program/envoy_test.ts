import { assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { type Envoy, startEnvoy, validateEnvoyConfig } from "../../harness/envoy.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const DOMAIN = "edge";

// A day, so that no window ends between two requests of a case; each case has a path of its own.
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

const CASES: Readonly<Record<string, (bed: Bed) => Promise<void>>> = {
  async "lets requests through under the limit, answers 429 over it, and tells when the window ends"(bed) {
    const seen = [];
    for (let call = 1; call <= 4; call++) seen.push(await bed.get("allow", "/limited"));
    assertEquals(seen, [
      { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "2", limited: null },
      { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "1", limited: null },
      { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "0", limited: null },
      { status: 429, body: "", limit: "3, 3;w=86400", remaining: "0", limited: "true" },
    ]);
    const { headers } = await bed.fetch("allow", "/limited");
    assertMatch(headers.get("x-ratelimit-reset") ?? "", /^[1-9][0-9]*$/);
  },
  async "passes Weir's own response headers on to the client"(bed) {
    const seen = [];
    for (let call = 1; call <= 2; call++) {
      const { status, headers } = await bed.fetch("allow", "/own");
      assertMatch(headers.get("ratelimit-reset") ?? "", /^[0-9]+$/);
      seen.push([status, headers.get("ratelimit-limit"), headers.get("ratelimit-remaining")]);
    }
    assertEquals(seen, [[200, "1", "0"], [429, "1", "0"]]);
  },
  async "lets everything through under a rule in shadow mode"(bed) {
    const seen = [];
    for (let call = 1; call <= 3; call++) seen.push((await bed.get("allow", "/shadow")).status);
    assertEquals(seen, [200, 200, 200]);
  },
  async "follows a rule that was changed on disk"(bed) {
    assertEquals((await bed.get("allow", "/changed")).limit, "2, 2;w=86400");
    await Deno.writeTextFile(join(bed.weir.rulesFolder, "rules.yaml"), rules(1_000));
    const seen = await until("the new limit", async () => {
      const answer = await bed.get("allow", "/changed");
      return answer.limit === "1000, 1000;w=86400" && answer;
    });
    assertEquals(seen.status, 200);
  },
  async "decides by its failure mode while Weir is gone, and Weir limits again once it is back"(bed) {
    assertEquals((await bed.get("deny", "/failing")).status, 200);
    assertEquals((await bed.get("deny", "/failing")).status, 429);
    const { grpc } = bed.weir.running.addresses;
    await bed.weir[Symbol.asyncDispose]();
    // Nobody counted: the headers that tell of a limit are missing.
    const { status, limit } = await bed.get("allow", "/failing");
    assertEquals({ status, limit }, { status: 200, limit: null });
    assertEquals((await bed.get("deny", "/failing")).status, 500);
    bed.weir = await startWeir(bed.engine, grpc.split(":").at(-1));
    await until(
      "calls to be limited again",
      async () => (await bed.get("deny", "/failing")).status === 429,
    );
    assertEquals((await bed.get("allow", "/failing")).status, 429);
  },
};

for (const engine of ["grpc-js", "native"]) {
  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy`),
    async fn(test) {
      await using bed = await startBed(engine);
      for (const [title, run] of Object.entries(CASES)) await test.step(title, () => run(bed));
    },
  });
}

/** What these tests compare of an answer. */
interface Seen {
  readonly status: number;
  readonly body: string;
  readonly limit: string | null;
  readonly remaining: string | null;
  readonly limited: string | null;
}

/** Weir, an Envoy that asks it, and the server behind that Envoy. */
class Bed implements AsyncDisposable {
  weir: ServeFixture;
  readonly engine: string;
  readonly #upstream: Deno.HttpServer<Deno.NetAddr>;
  #envoy: Envoy | undefined;

  constructor(weir: ServeFixture, engine: string) {
    this.weir = weir;
    this.engine = engine;
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#upstream = Deno.serve(quiet, () => new Response("upstream"));
  }

  async startEnvoy(): Promise<void> {
    const upstream = `127.0.0.1:${this.#upstream.addr.port}`;
    const weir = this.weir.running.addresses.grpc;
    this.#envoy = await startEnvoy(envoyConfig({ weir, upstream, domain: DOMAIN }));
  }

  async fetch(
    listener: "allow" | "deny",
    path: string,
  ): Promise<{ status: number; body: string; headers: Headers }> {
    const response = await fetch(`http://${this.#envoy?.address(listener)}${path}`);
    return { status: response.status, body: await response.text(), headers: response.headers };
  }

  async get(listener: "allow" | "deny", path: string): Promise<Seen> {
    const { status, body, headers } = await this.fetch(listener, path);
    return {
      status,
      body,
      limit: headers.get("x-ratelimit-limit"),
      remaining: headers.get("x-ratelimit-remaining"),
      limited: headers.get("x-envoy-ratelimited"),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#envoy?.[Symbol.asyncDispose]();
    await this.#upstream.shutdown();
    await this.weir[Symbol.asyncDispose]();
  }
}

async function startBed(engine: string): Promise<Bed> {
  const bed = new Bed(await startWeir(engine), engine);
  try {
    await bed.startEnvoy();
    return bed;
  } catch (error) {
    await bed[Symbol.asyncDispose]();
    throw error;
  }
}

async function startWeir(engine: string, port = "0"): Promise<ServeFixture> {
  const env = { GRPC_ENGINE: engine, GRPC_PORT: port, LIMIT_RESPONSE_HEADERS_ENABLED: "true" };
  return await ServeFixture.start({ env, rules: { "rules.yaml": rules(2) } });
}
