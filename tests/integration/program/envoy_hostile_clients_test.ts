/** Requests of clients of Envoy that change its calls to Weir, with a real Envoy that lets errors pass. */
import { assert, assertEquals } from "#assert";
import type { HeaderField } from "../../../src/grpc/native/hpack_decoder.ts";
import { EnvoyBed, type EnvoyPlaces } from "../../harness/envoy_bed.ts";
import { envoyConfig, withTracing } from "../../harness/envoy_config.ts";
import { cancel, concatBytes, headers } from "../../harness/h2_peer.ts";
import { RawClient } from "../../harness/raw_client.ts";
import { until } from "../../harness/until.ts";
import { needs } from "../../harness/tools.ts";

const DOMAIN = "edge";
const ROUNDS = 40;
/** Requests of a connection; Envoy closes it after about 250 that are reset. */
const RESETS = 400;
const CONNECTIONS = 12;
/** Calls to Weir that Envoy has reset. */
const RESET = "cluster.weir.upstream_rq_tx_reset";
const AT_ONCE = 5;
// A day, so that no window ends during the test.
const RULES = `domain: ${DOMAIN}
descriptors:
  - key: path
    rate_limit: { unit: day, requests_per_unit: 1 }
`;
const requestFields = (path: string): HeaderField[] =>
  Object.entries({ ":method": "GET", ":scheme": "http", ":path": path, ":authority": "edge" });
const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** Headers of a client that tries to evade its limit, or that of others. */
const ATTACKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "a tracestate of 20,000 bytes": { tracestate: `a=${"x".repeat(20_000)}` },
  "a tracestate of 45,000 bytes": { tracestate: `a=${"x".repeat(45_000)}` },
  "a baggage of 45,000 bytes": { baggage: `a=${"x".repeat(45_000)}` },
  "both": { tracestate: `a=${"x".repeat(25_000)}`, baggage: `a=${"x".repeat(25_000)}` },
  "headers that are no text": { tracestate: "a=\xff\xfe", baggage: "\xe9=\xe9" },
};

for (const engine of ["native", "grpc-js"]) {
  Deno.test({
    ...needs(
      ["envoy"],
      `${engine}: nothing that a client of Envoy sends opens the gate, for itself or others`,
    ),
    async fn(test) {
      const env = { GRPC_ENGINE: engine };
      const config = (places: EnvoyPlaces) => withTracing(envoyConfig({ ...places, domain: DOMAIN }));
      await using bed = await EnvoyBed.start({ rules: { "edge.yaml": RULES }, env, config });
      const { envoy, weir } = bed;
      const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
        bed.status("allow", path, { headers });
      assertEquals([await get("/neighbour"), await get("/neighbour")], [200, 429]);
      for (const [name, more] of Object.entries(ATTACKS)) {
        await test.step(name, async () => {
          const attack = () => get(`/${encodeURIComponent(name)}`, { traceparent: TRACEPARENT, ...more });
          const statuses = [await attack()];
          for (let round = 0; round < ROUNDS; round++) {
            const attacks = Array.from({ length: AT_ONCE }, attack);
            statuses.push(...await Promise.all([...attacks, get("/neighbour")]));
          }
          assertEquals(statuses.map((status) => status === 200).lastIndexOf(true), 0);
          assertEquals(new Set(statuses.slice(1)), new Set([429]));
        });
      }
      await test.step("thousands of requests that are reset immediately", async () => {
        const statuses: number[] = [];
        for (let connection = 0; connection < CONNECTIONS; connection++) {
          await using client = await RawClient.connect(envoy.address("allow"), { settings: [], pong: true });
          client.send(...Array.from({ length: RESETS }, (_, index) => {
            const id = 2 * index + 1;
            return concatBytes(headers(id, requestFields("/attack"), true), cancel(id));
          }));
          await until(
            "Envoy to read them",
            async () => ((await envoy.stats())[RESET] ?? 0) >= (connection + 1) * RESETS / 2,
          );
          statuses.push(...await Promise.all([get("/neighbour"), get("/neighbour")]));
        }
        assertEquals(new Set(statuses), new Set([429]));
        assertEquals((await envoy.stats())["cluster.weir.upstream_cx_total"], 1);
      });
      // The headers did arrive.
      assert(weir.log.some((line) => line.includes("gRPC call with long headers")), weir.log.join("\n"));
    },
  });
}
