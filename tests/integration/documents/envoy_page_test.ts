/** Validates the Envoy examples of the pages with Envoy, each put into `config/deploy/envoy.yaml`. */
import { assertEquals, assertMatch } from "#assert";
import { parse } from "yaml";
import { markValue } from "../../harness/document_marks.ts";
import { documentPages } from "../../harness/documents.ts";
import { validateEnvoyConfig } from "../../harness/envoy.ts";
import { needs } from "../../harness/tools.ts";

/** Puts an example in the place of a value of the configuration. */
type Put = (value: unknown, example: unknown) => unknown;

/** The key of the value that an example changes, and how. */
type Place = readonly [key: string, put: Put];

interface Patch {
  readonly applyTo: string;
  readonly patch: { readonly value: unknown };
}

interface JsonPatch {
  readonly type: string;
  readonly operation: { readonly value: unknown };
}

const before: Put = (value, example) => [example, ...list(value)];
const CLUSTER: Place = ["clusters", (value, example) => [list(value)[0], example]];
const FILTER: Place = ["http_filters", (value, example) => [example, list(value)[1]]];
const HOST: Place = ["virtual_hosts", (value, example) => [{ ...list(value)[0], ...record(example) }]];

const PLACES: Readonly<Record<string, Place>> = {
  "envoy-route": ["routes", before],
  "envoy-per-route": ["routes", before],
  "envoy-jwt-filter": ["http_filters", before],
  "envoy-set-metadata-filter": ["http_filters", before],
  "envoy-shadow-filter": ["http_filters", before],
  "envoy-rate-limits": ["route", (value, example) => ({ ...record(value), ...record(example) })],
  "envoy-virtual-host": ["virtual_hosts", (_, example) => [example]],
  "envoy-cluster": CLUSTER,
  "envoy-connection-manager": [
    "typed_config",
    (value, example) => "stat_prefix" in record(value) ? { ...record(value), ...record(example) } : value,
  ],
};
const PATCHED: Readonly<Record<string, Place>> = {
  CLUSTER,
  HTTP_FILTER: FILTER,
  VIRTUAL_HOST: HOST,
  "type.googleapis.com/envoy.config.cluster.v3.Cluster": CLUSTER,
  "type.googleapis.com/envoy.config.listener.v3.Listener": FILTER,
  "type.googleapis.com/envoy.config.route.v3.RouteConfiguration": [
    HOST[0],
    (value, example) => HOST[1](value, { rate_limits: example }),
  ],
};
const KEYS = JSON.stringify({ keys: [{ kty: "oct", alg: "HS256", k: "MDEyMzQ1Njc4OWFiY2RlZg" }] });

const BASE = await Deno.readTextFile(new URL("../../../config/deploy/envoy.yaml", import.meta.url));
const EXAMPLES = documentPages().flatMap(({ path, blocks }) =>
  blocks.flatMap((block) => {
    const name = markValue(block, "example") ?? "";
    return /^(?:envoy-|istio-envoyfilter|envoygateway-envoypatchpolicy)/.test(name)
      ? [{ name, at: `${path}:${block.line}: ${name}`, text: block.text }]
      : [];
  })
);

Deno.test("the pages have an example for each place", () => {
  const names = new Set(EXAMPLES.map(({ name }) => name));
  assertEquals(Object.keys(PLACES).filter((name) => !names.has(name)), []);
});

for (const { name, at, text } of EXAMPLES) {
  Deno.test({
    ...needs(["envoy"], `${at}: Envoy accepts it`),
    async fn() {
      assertEquals(await validateEnvoyConfig(withParts(partsOf(name, text))), "");
    },
  });
}

Deno.test({
  ...needs(["envoy"], "Envoy refuses an example with a field that it does not have"),
  async fn() {
    const parts = partsOf("envoy-rate-limits", "rate_limits: [{ action: [{ remote_address: {} }] }]");
    assertMatch(await validateEnvoyConfig(withParts(parts)), /no\s+such\s+field:\s+'action'/);
  },
});

/** The changes of an example: itself, or each patch in it. */
function partsOf(name: string, text: string): [place: Place | undefined, value: unknown][] {
  const keys = (key: unknown, value: unknown) => key === "local_jwks" ? { inline_string: KEYS } : value;
  const example: { spec?: { configPatches?: Patch[]; jsonPatches?: JsonPatch[] } } = parse(text, keys);
  const { configPatches = [], jsonPatches = [] } = example.spec ?? {};
  if (example.spec === undefined) return [[PLACES[name], example]];
  return [
    ...configPatches.map((
      { applyTo, patch },
    ): [Place | undefined, unknown] => [PATCHED[applyTo], patch.value]),
    ...jsonPatches.map((
      { type, operation },
    ): [Place | undefined, unknown] => [PATCHED[type], operation.value]),
  ];
}

/** The configuration with the parts in their places. */
function withParts(parts: readonly [place: Place | undefined, value: unknown][]): object {
  return parse(BASE, (key, value) =>
    parts.reduce((changed: unknown, [place, example]) => {
      if (place === undefined) {
        throw new Error("Cannot validate an example: it has no place in the configuration");
      }
      return key === place[0] ? place[1](changed, example) : changed;
    }, value));
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value : [];
}

function record(value: unknown): Record<string, unknown> {
  return { ...(typeof value === "object" ? value : {}) };
}
