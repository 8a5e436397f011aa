import { assertEquals } from "#assert";
import { type OtlpGrpcOptions, otlpGrpcOptions } from "../../../src/telemetry/otlp_grpc_options.ts";
import { makeCertificates } from "../../harness/certificates.ts";

const SECURE = { ca: undefined };
const at = (host: string, port: number) => ({ host, port });

type Endpoint = [variables: Readonly<Record<string, string>>, target: OtlpGrpcOptions["target"]];
const ENDPOINTS: readonly Endpoint[] = [
  [{}, { address: at("localhost", 4317), tls: undefined }],
  [{ ENDPOINT: "http://c:1" }, { address: at("c", 1), tls: undefined }],
  [{ ENDPOINT: " http://c:1/path " }, { address: at("c", 1), tls: undefined }],
  [{ ENDPOINT: "http://c" }, { address: at("c", 80), tls: undefined }],
  [{ ENDPOINT: "https://c" }, { address: at("c", 443), tls: SECURE }],
  [{ ENDPOINT: "https://[::1]:5" }, { address: at("::1", 5), tls: SECURE }],
  [{ ENDPOINT: "c:4317" }, { address: at("c", 4317), tls: SECURE }],
  [{ ENDPOINT: "c:4317", INSECURE: "True" }, { address: at("c", 4317), tls: undefined }],
  [{ ENDPOINT: "c", INSECURE: "true", TRACES_INSECURE: "false" }, { address: at("c", 443), tls: SECURE }],
  [{ ENDPOINT: "https://c:1", INSECURE: "true" }, { address: at("c", 1), tls: SECURE }],
  [{ ENDPOINT: "unix:///tmp/c.sock" }, { address: { path: "/tmp/c.sock" }, tls: SECURE }],
  [{ ENDPOINT: "unix:///tmp/c.sock", INSECURE: "true" }, {
    address: { path: "/tmp/c.sock" },
    tls: undefined,
  }],
  [{ ENDPOINT: "http://a:1", TRACES_ENDPOINT: "http://b:2" }, { address: at("b", 2), tls: undefined }],
  [{ ENDPOINT: "http://a:1", TRACES_ENDPOINT: " " }, { address: at("a", 1), tls: undefined }],
];

function optionsOf(signal: "TRACES" | "METRICS", otlp: Readonly<Record<string, string>>): OtlpGrpcOptions {
  return otlpGrpcOptions(signal, new Map(Object.entries(otlp)));
}

for (const [variables, target] of ENDPOINTS) {
  Deno.test(`OTLP over gRPC: the server of ${JSON.stringify(variables)}`, () => {
    assertEquals(optionsOf("TRACES", variables).target, target);
  });
}

Deno.test("OTLP over gRPC: headers are decoded and merged, and names are in lower case", () => {
  const otlp = {
    HEADERS: "Authorization=Bearer%20a%3D, x-one = 1 ;property=2,,x-two=a=b",
    TRACES_HEADERS: "X-One=3",
  };
  assertEquals([optionsOf("TRACES", otlp).metadata, optionsOf("METRICS", otlp).metadata], [
    [["authorization", "Bearer a="], ["x-one", "3"], ["x-two", "a=b"]],
    [["authorization", "Bearer a="], ["x-one", "1"], ["x-two", "a=b"]],
  ]);
});

Deno.test("OTLP over gRPC: one signal may be compressed", () => {
  const otlp = { COMPRESSION: "gzip", TRACES_COMPRESSION: "none" };
  const compressed = (["TRACES", "METRICS"] as const).map((signal) => optionsOf(signal, otlp).isCompressed);
  assertEquals(compressed, [false, true]);
});

Deno.test("OTLP over gRPC: certificates are read, a client certificate only with its key", async () => {
  await using certificates = await makeCertificates();
  const { authority, client } = certificates;
  const [ca, cert, key] = [authority.certFile, client.certFile, client.keyFile].map((path) =>
    Deno.readTextFileSync(path)
  );
  const files = {
    ENDPOINT: "https://c",
    CERTIFICATE: authority.certFile,
    CLIENT_CERTIFICATE: client.certFile,
    TRACES_CLIENT_KEY: client.keyFile,
  };
  assertEquals(optionsOf("TRACES", files).target.tls, { ca, cert, key });
  assertEquals(optionsOf("METRICS", files).target.tls, { ca });
});
