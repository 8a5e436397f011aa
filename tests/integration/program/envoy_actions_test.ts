/** The descriptors, limits and hits that actions of Envoy send, as docs/envoy.md describes them. */
import { assertEquals } from "@std/assert";
import { parse } from "yaml";
import { type Envoy, startEnvoy } from "../../harness/envoy.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

const BASE = await Deno.readTextFile(new URL("../../../config/deploy/envoy.yaml", import.meta.url));
const FILTER = "envoy.filters.http.ratelimit";
const PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";
const SET_METADATA = "type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config";
const EXPRESSION = "type.googleapis.com/envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor";
const WRITES = [{ name: ":method", string_match: { exact: "POST" } }];

/** Actions by the descriptor that they send, as the statistics name it; those of one item are in one list. */
const DESCRIPTORS: Readonly<Record<string, readonly object[]>> = {
  "account_bob": [{ request_headers: { header_name: "x-account", descriptor_key: "account" } }],
  "path_/orders?tenant=acme": [{ request_headers: { header_name: ":path", descriptor_key: "path" } }],
  "url_/orders": [{
    extension: {
      name: "envoy.rate_limit_descriptors.expr",
      typed_config: { "@type": EXPRESSION, descriptor_key: "url", text: "request.url_path" },
    },
  }],
  "tenant_acme": [{ query_parameters: { query_parameter_name: "tenant", descriptor_key: "tenant" } }],
  "remote_address_127_0_0_1": [{ remote_address: {} }],
  "masked_remote_address_127_0_0_0/24": [{ masked_remote_address: { v4_prefix_mask_len: 24 } }],
  "generic_key_edge": [{ generic_key: { descriptor_value: "edge" } }],
  "plan_free": [{ generic_key: { descriptor_key: "plan", descriptor_value: "free" } }],
  "header_match_write": [{ header_value_match: { descriptor_value: "write", headers: WRITES } }],
  "tier_gold": [{
    metadata: { descriptor_key: "tier", metadata_key: { key: "limits", path: [{ key: "tier" }] } },
  }],
  "destination_cluster_application": [{ destination_cluster: {} }],
  "kept_yes": [
    { request_headers: { header_name: "x-absent", descriptor_key: "absent", skip_if_absent: true } },
    { generic_key: { descriptor_key: "kept", descriptor_value: "yes" } },
  ],
};
/** Makes no descriptor. */
const ABSENT = [{ request_headers: { header_name: "x-absent", descriptor_key: "absent" } }];

Deno.test({
  ...needs(["envoy"], "actions of Envoy send the descriptors that the page lists"),
  async fn() {
    const rate_limits = [...Object.values(DESCRIPTORS), ABSENT].map((actions) => ({ actions }));
    await using bed = await Bed.start({ routes: { rate_limits }, keys: keysOf(DESCRIPTORS) });
    assertEquals(await bed.post(), 200);
    const expected = Object.keys(DESCRIPTORS).map((name) => [`${name}.total_hits`, 1]);
    assertEquals(await bed.counters(/total_hits$/), Object.fromEntries(expected));
  },
});

Deno.test({
  ...needs(["envoy"], "a limit from metadata overrides the rule"),
  async fn() {
    const limit = { dynamic_metadata: { metadata_key: { key: "limits", path: [{ key: "orders" }] } } };
    const rate_limits = [{ actions: DESCRIPTORS["account_bob"], limit }];
    await using bed = await Bed.start({ routes: { rate_limits }, keys: ["account"] });
    assertEquals([await bed.post(), await bed.post(), await bed.post()], [200, 200, 429]);
  },
});

Deno.test({
  ...needs(["envoy"], "costs count, after the response too, and hits come back"),
  async fn() {
    const count = (name: string, more: object) => {
      return { actions: [{ generic_key: { descriptor_key: name, descriptor_value: "x" } }], ...more };
    };
    const rate_limits = [
      count("fixed", { hits_addend: { number: 5 } }),
      count("asked", { hits_addend: { format: "%REQ(X-COST)%" } }),
      count("sent", { apply_on_stream_done: true, hits_addend: { format: "%BYTES_SENT%" } }),
      count("back", { hits_addend: { number: 10 } }),
      count("back", { apply_on_stream_done: true, hits_addend: { number: 8, is_negative_hits: true } }),
    ];
    await using bed = await Bed.start({
      perRoute: { rate_limits },
      keys: ["fixed", "asked", "sent", "back"],
    });
    assertEquals(await bed.post(), 200);
    await until(
      "the hits to come back",
      async () => (await bed.counters(/returned/))["back_x.returned_hits"],
    );
    assertEquals(await bed.counters(/total_hits$/), {
      "fixed_x.total_hits": 5,
      "asked_x.total_hits": 7,
      "sent_x.total_hits": "upstream".length,
      "back_x.total_hits": 10,
    });
    assertEquals(await bed.counters(/returned_hits$/), { "back_x.returned_hits": 8 });
  },
});

/** Addresses that a client puts into X-Forwarded-For, one request each. */
const FORGED = ["203.0.113.1", "203.0.113.2", "198.51.100.7, 203.0.113.3"];

/** The connection manager, and the address that Envoy sends for each request of the client on 127.0.0.1. */
const ADDRESSES: Readonly<Record<string, readonly [connection: object, expected: readonly string[]]>> = {
  "as in the file, X-Forwarded-For is ignored": [{}, ["127_0_0_1", "127_0_0_1", "127_0_0_1"]],
  "behind one trusted proxy, its last entry counts": [
    { xff_num_trusted_hops: 1 },
    ["203_0_113_1", "203_0_113_2", "203_0_113_3"],
  ],
  "without use_remote_address, a client chooses its address": [
    { use_remote_address: false },
    ["203_0_113_1", "203_0_113_2", "203_0_113_3"],
  ],
};

for (const [name, [connection, expected]] of Object.entries(ADDRESSES)) {
  Deno.test({
    ...needs(["envoy"], `remote_address: ${name}`),
    async fn() {
      const rate_limits = [{ actions: DESCRIPTORS["remote_address_127_0_0_1"] }];
      await using bed = await Bed.start({ routes: { rate_limits }, keys: ["remote_address"], connection });
      for (const forged of FORGED) await bed.post({ "x-forwarded-for": forged });
      const hits: Record<string, number> = {};
      for (const address of expected) {
        const counter = `remote_address_${address}.total_hits`;
        hits[counter] = (hits[counter] ?? 0) + 1;
      }
      assertEquals(await bed.counters(/total_hits$/), hits);
    },
  });
}

interface BedOptions {
  /** Fields of the route. */
  readonly routes?: object;
  /** Fields of the filter, for the route. */
  readonly perRoute?: object;
  /** Keys that have a rule. */
  readonly keys: readonly string[];
  /** Fields of the connection manager. */
  readonly connection?: object;
}

/** An application behind an Envoy that asks a Weir. */
class Bed implements AsyncDisposable {
  readonly #weir: ServeFixture;
  readonly #application: Deno.HttpServer<Deno.NetAddr>;
  readonly #envoy: Envoy;

  private constructor(weir: ServeFixture, application: Deno.HttpServer<Deno.NetAddr>, envoy: Envoy) {
    this.#weir = weir;
    this.#application = application;
    this.#envoy = envoy;
  }

  static async start({ routes = {}, perRoute, keys, connection = {} }: BedOptions): Promise<Bed> {
    await using stack = new AsyncDisposableStack();
    const rules = keys.map((key) =>
      `  - { key: ${key}, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000 } }\n`
    );
    const weir = stack.use(
      await ServeFixture.start({ rules: { "shop.yaml": `domain: shop\ndescriptors:\n${rules.join("")}` } }),
    );
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    const application = stack.use(Deno.serve(quiet, () => new Response("upstream")));
    const ports = new Map([
      [10_000, 0],
      [3_000, application.addr.port],
      [8_081, Number(weir.grpcAddress.split(":").at(-1))],
    ]);
    const config = parse(BASE, (key, value) => {
      if (key === "port_value") return ports.get(Number(value));
      // A busy machine is no failure.
      if (key === "timeout" || key === "connect_timeout") return "60s";
      if (key === "http_filters" && Array.isArray(value)) return [METADATA_FILTER, ...value];
      if (key === "typed_config" && Object.hasOwn(value as object, "stat_prefix")) {
        return { ...value as object, ...connection };
      }
      return key === "routes" ? [route(routes, perRoute)] : value;
    });
    const envoy = stack.use(await startEnvoy(config));
    stack.move();
    return new Bed(weir, application, envoy);
  }

  /** The status of a request. */
  async post(headers: Readonly<Record<string, string>> = {}): Promise<number> {
    const url = `http://${this.#envoy.address("edge").replace("0.0.0.0", "127.0.0.1")}/orders?tenant=acme`;
    const response = await fetch(url, {
      method: "POST",
      headers: { "x-account": "bob", "x-cost": "7", ...headers },
    });
    await response.body?.cancel();
    return response.status;
  }

  /** Counters of rules that are not 0, without the domain. */
  async counters(pattern: RegExp): Promise<Record<string, number>> {
    const response = await fetch(`http://${this.#weir.debugAddress}/stats`);
    const lines = (await response.text()).matchAll(/^ratelimit\.service\.rate_limit\.shop\.(.+): (\d+)$/gm);
    const counters = [...lines].map(([, name = "", count = ""]): [string, number] => [name, Number(count)]);
    return Object.fromEntries(counters.filter(([name, count]) => pattern.test(name) && count !== 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#envoy[Symbol.asyncDispose]();
    await this.#application.shutdown();
    await this.#weir[Symbol.asyncDispose]();
  }
}

const METADATA_FILTER = {
  name: "envoy.filters.http.set_metadata",
  typed_config: {
    "@type": SET_METADATA,
    metadata: [{
      metadata_namespace: "limits",
      value: { tier: "gold", orders: { requests_per_unit: 2, unit: "DAY" } },
    }],
  },
};

function route(fields: object, perRoute: object | undefined): object {
  return {
    match: { prefix: "/" },
    route: { cluster: "application", ...fields },
    ...(perRoute && { typed_per_filter_config: { [FILTER]: { "@type": PER_ROUTE, ...perRoute } } }),
  };
}

/** The first key of each descriptor. */
function keysOf(descriptors: typeof DESCRIPTORS): string[] {
  return Object.keys(descriptors).map((name) => name.replace(/_[^_]*$|_127.*$/, ""));
}
