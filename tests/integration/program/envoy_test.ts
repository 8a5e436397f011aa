import { assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { type Envoy, startEnvoy, validateEnvoyConfig } from "../../harness/envoy.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";

const DOMAIN = "edge";

// A day, so that no window ends between two requests of a case.
function rules(requestsPerUnit: number): string {
  return `domain: ${DOMAIN}
descriptors:
  - key: path
    value: /limited
    rate_limit: { unit: day, requests_per_unit: ${requestsPerUnit} }
  - key: path
    value: /shadow
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 1 }
`;
}

Deno.test({
  ...needs(["envoy"], "Envoy accepts the configuration of these tests"),
  async fn() {
    const config = envoyConfig({ weir: "127.0.0.1:8081", upstream: "127.0.0.1:8080", domain: DOMAIN });
    assertEquals(await validateEnvoyConfig(config), "");
  },
});

for (const engine of ["grpc-js", "native"]) {
  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy lets requests through under the limit and answers 429 over it`),
    async fn() {
      await using bed = await startBed(engine, rules(3));
      const seen = [];
      for (let call = 1; call <= 4; call++) seen.push(await bed.get("allow", "/limited"));
      assertEquals(seen, [
        { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "2", limited: null },
        { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "1", limited: null },
        { status: 200, body: "upstream", limit: "3, 3;w=86400", remaining: "0", limited: null },
        { status: 429, body: "", limit: "3, 3;w=86400", remaining: "0", limited: "true" },
      ]);
    },
  });

  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy tells when the window ends`),
    async fn() {
      await using bed = await startBed(engine, rules(3));
      const { headers } = await bed.fetch("allow", "/limited");
      assertMatch(headers.get("x-ratelimit-reset") ?? "", /^[1-9][0-9]*$/);
    },
  });

  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy passes Weir's own response headers on to the client`),
    async fn() {
      await using bed = await startBed(engine, rules(1), { LIMIT_RESPONSE_HEADERS_ENABLED: "true" });
      const seen = [];
      for (let call = 1; call <= 2; call++) {
        const { status, headers } = await bed.fetch("allow", "/limited");
        assertMatch(headers.get("ratelimit-reset") ?? "", /^[0-9]+$/);
        seen.push([status, headers.get("ratelimit-limit"), headers.get("ratelimit-remaining")]);
      }
      assertEquals(seen, [[200, "1", "0"], [429, "1", "0"]]);
    },
  });

  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy lets everything through under a rule in shadow mode`),
    async fn() {
      await using bed = await startBed(engine, rules(1));
      const seen = [];
      for (let call = 1; call <= 3; call++) seen.push((await bed.get("allow", "/shadow")).status);
      assertEquals(seen, [200, 200, 200]);
    },
  });

  Deno.test({
    ...needs(["envoy"], `${engine}: Envoy follows a rule that was changed on disk`),
    async fn() {
      await using bed = await startBed(engine, rules(2));
      assertEquals((await bed.get("allow", "/limited")).limit, "2, 2;w=86400");
      await Deno.writeTextFile(join(bed.weir.rulesFolder, "rules.yaml"), rules(1_000));
      const seen = await until("the new limit", async () => {
        const answer = await bed.get("allow", "/limited");
        return answer.limit === "1000, 1000;w=86400" && answer;
      });
      assertEquals(seen.status, 200);
    },
  });

  Deno.test({
    ...needs(
      ["envoy"],
      `${engine}: Envoy's failure mode decides while Weir is gone, and Weir limits again once it is back`,
    ),
    async fn() {
      await using bed = await startBed(engine, rules(1));
      assertEquals((await bed.get("deny", "/limited")).status, 200);
      assertEquals((await bed.get("deny", "/limited")).status, 429);
      await bed.weir.kill();
      // Nobody counted: the headers that tell of a limit are missing.
      const { status, limit } = await bed.get("allow", "/limited");
      assertEquals({ status, limit }, { status: 200, limit: null });
      assertEquals((await bed.get("deny", "/limited")).status, 500);
      await bed.restartWeir();
      await until(
        "calls to be limited again",
        async () => (await bed.get("deny", "/limited")).status === 429,
      );
      assertEquals((await bed.get("allow", "/limited")).status, 429);
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
  weir: WeirProcess;
  readonly #upstream: Deno.HttpServer<Deno.NetAddr>;
  readonly #made: { readonly engine: string; readonly rules: string };
  #envoy: Envoy | undefined;

  constructor(weir: WeirProcess, made: { readonly engine: string; readonly rules: string }) {
    this.weir = weir;
    this.#made = made;
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#upstream = Deno.serve(quiet, () => new Response("upstream"));
  }

  async startEnvoy(): Promise<void> {
    const upstream = `127.0.0.1:${this.#upstream.addr.port}`;
    this.#envoy = await startEnvoy(envoyConfig({ weir: this.weir.grpcAddress, upstream, domain: DOMAIN }));
  }

  async restartWeir(): Promise<void> {
    const port = this.weir.grpcAddress.split(":").at(-1) ?? "";
    const gone = this.weir;
    const { engine, rules } = this.#made;
    const env = { GRPC_ENGINE: engine, GRPC_PORT: port };
    this.weir = await startWeir({ env, rules: { "rules.yaml": rules } });
    await gone[Symbol.asyncDispose]();
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

async function startBed(engine: string, rules: string, more: Record<string, string> = {}): Promise<Bed> {
  const env = { GRPC_ENGINE: engine, ...more };
  const bed = new Bed(await startWeir({ env, rules: { "rules.yaml": rules } }), { engine, rules });
  try {
    await bed.startEnvoy();
    return bed;
  } catch (error) {
    await bed[Symbol.asyncDispose]();
    throw error;
  }
}
