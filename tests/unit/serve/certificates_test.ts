import { assertEquals } from "#assert";
import { certificateFiles } from "../../../src/serve/certificates.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";

const CASES: Readonly<Record<string, readonly [env: Record<string, string>, settings: readonly string[]]>> = {
  "no TLS": [{ WEBHOOK_CA_FILE: "" }, []],
  "the servers": [
    {
      GRPC_SERVER_USE_TLS: "true",
      GRPC_SERVER_TLS_CERT: "a",
      GRPC_SERVER_TLS_KEY: "b",
      HTTP_SERVER_USE_TLS: "true",
      HTTP_SERVER_TLS_CERT: "a",
      HTTP_SERVER_TLS_KEY: "b",
      GRPC_CLIENT_TLS_CACERT: "c",
    },
    ["GRPC_SERVER_TLS_CERT", "GRPC_CLIENT_TLS_CACERT", "HTTP_SERVER_TLS_CERT"],
  ],
  "the key-value cache": [
    {
      BACKEND_TYPE: "kv",
      KV_URL: "rediss://localhost:6379",
      KV_TLS: "true",
      KV_TLS_CACERT: "c",
      KV_TLS_CLIENT_CERT: "a",
      KV_TLS_CLIENT_KEY: "b",
    },
    ["KV_TLS_CLIENT_CERT", "KV_TLS_CACERT"],
  ],
  "the store and its deliveries": [
    {
      WEBHOOK_STORE: "postgres://a@localhost/b?sslmode=verify-full&sslrootcert=/c&sslcert=/a&sslkey=/b",
      WEBHOOK_ENCRYPTION_KEY: "A".repeat(43) + "=",
      WEBHOOK_CA_FILE: "c",
    },
    ["WEBHOOK_CA_FILE", "sslcert", "sslrootcert"],
  ],
  "the authorities of the system": [
    {
      WEBHOOK_STORE: "postgres://a@localhost/b?sslmode=verify-full&sslrootcert=system",
      WEBHOOK_ENCRYPTION_KEY: "A".repeat(43) + "=",
    },
    [],
  ],
  "the exporter of spans": [
    {
      TRACING_ENABLED: "true",
      OTEL_EXPORTER_OTLP_CERTIFICATE: "c",
      OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: "a",
    },
    ["OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE"],
  ],
};

for (const [what, [env, expected]] of Object.entries(CASES)) {
  Deno.test(`certificates: the files of ${what}`, () => {
    const { settings } = readSettings({ BACKEND_TYPE: "memory", ...env });
    assertEquals(certificateFiles(settings).map(({ setting }) => setting), expected);
  });
}
