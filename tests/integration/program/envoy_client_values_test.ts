/** Behind Envoy with its default, `failure_mode_deny: false`, no request of a client passes that a rule forbids. */
import { assertEquals } from "#assert";
import { Buffer } from "node:buffer";
import { EnvoyBed, type EnvoyPlaces } from "../../harness/envoy_bed.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { needs } from "../../harness/tools.ts";

const DOMAIN = "edge";
const RULES = {
  "rules.yaml": `domain: ${DOMAIN}
descriptors:
  - { key: header, rate_limit: { unit: year, requests_per_unit: 1 } }
  - { key: path, rate_limit: { unit: year, requests_per_unit: 1 } }
`,
};
/** Header values by bytes, one character a byte. */
const HEADERS: Readonly<Record<string, string>> = {
  "of 9,000 bytes": "a".repeat(9_000),
  "of 9,000 bytes with another end": `${"a".repeat(8_999)}b`,
  "of 50,000 bytes": "c".repeat(50_000),
  "in Latin-1": "caf\xe9",
  "in Latin-1 that differs in the last byte": "caf\xea",
  "of every byte from 0x80": String.fromCharCode(...Array.from({ length: 128 }, (_, index) => 0x80 + index)),
  "of 9,000 bytes that are not UTF-8": "\xff".repeat(9_000),
};

for (const engine of ["native", "grpc-js"]) {
  Deno.test({
    ...needs(
      ["envoy"],
      `${engine}: Envoy with failure_mode_deny: false lets nothing pass that is over its limit`,
    ),
    async fn() {
      const config = (places: EnvoyPlaces) => envoyConfig({ ...places, domain: DOMAIN, header: "x-client" });
      await using bed = await EnvoyBed.start({ env: { GRPC_ENGINE: engine }, rules: RULES, config });
      const address = bed.envoy.address("allow");
      const three = async (
        call: (index: number) => Promise<number>,
      ) => [await call(1), await call(2), await call(3)];
      const seen: Record<string, readonly number[]> = {};
      let path = 0;
      for (const [what, header] of Object.entries(HEADERS)) {
        seen[what] = await three(() => statusOf(address, `/header-${path++}`, header));
        // A new value each time: the limit of the path holds next to it.
        seen[`with one ${what}`] = await three((end) => statusOf(address, `/with-${path}`, header + end));
      }
      const long = `/${"p".repeat(9_000)}`;
      seen["a path of 9,000 bytes"] = await three((call) => statusOf(address, long, `header ${call}`));
      assertEquals(seen, Object.fromEntries(Object.keys(seen).map((what) => [what, [200, 429, 429]])));
    },
  });
}

/** The status of a request with a header of these bytes, which `fetch` would not send. */
async function statusOf(address: string, path: string, header: string): Promise<number> {
  const [hostname = "", port] = address.split(":");
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const request = `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-client: ${header}\r\n\r\n`;
  const bytes = new Uint8Array(Buffer.from(request, "latin1"));
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
  const answer = await new Response(connection.readable).text();
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
}
