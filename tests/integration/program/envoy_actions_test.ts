/** The descriptors, limits and hits that actions of Envoy send, as docs/envoy.md describes them. */
import { assertEquals } from "#assert";
import { EnvoyBed, type EnvoyPlaces, shippedConfig } from "../../harness/envoy_bed.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";

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
  readonly #bed: EnvoyBed;

  private constructor(bed: EnvoyBed) {
    this.#bed = bed;
  }

  static async start({ routes = {}, perRoute, keys, connection = {} }: BedOptions): Promise<Bed> {
    const list = keys.map((key) =>
      `  - { key: ${key}, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1000 } }\n`
    );
    const rules = { "shop.yaml": `domain: shop\ndescriptors:\n${list.join("")}` };
    const config = (places: EnvoyPlaces) =>
      shippedConfig(places, (key, value) => {
        if (key === "http_filters" && Array.isArray(value)) return [METADATA_FILTER, ...value];
        if (key === "typed_config" && Object.hasOwn(value as object, "stat_prefix")) {
          return { ...value as object, ...connection };
        }
        return key === "routes" ? [route(routes, perRoute)] : value;
      });
    return new Bed(await EnvoyBed.start({ rules, config }));
  }

  /** The status of a request. */
  async post(headers: Readonly<Record<string, string>> = {}): Promise<number> {
    const all = { "x-account": "bob", "x-cost": "7", ...headers };
    return await this.#bed.status("edge", "/orders?tenant=acme", { method: "POST", headers: all });
  }

  /** Counters of rules that are not 0, without the domain. */
  async counters(pattern: RegExp): Promise<Record<string, number>> {
    const start = "ratelimit.service.rate_limit.shop.";
    const counters = Object.entries(await this.#bed.weir.stats()).filter(([name, count]) =>
      name.startsWith(start) && pattern.test(name) && count !== 0
    );
    return Object.fromEntries(counters.map(([name, count]) => [name.slice(start.length), count]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bed[Symbol.asyncDispose]();
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
