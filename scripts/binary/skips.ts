/** Tests that fail for one reason with the program of `deno task test:binary`. */
export interface Skip {
  readonly reason: string;
  /** The names of the tests by their file. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
  /** They pass at times, so that one that does says nothing. */
  readonly isUnsteady?: true;
}

/** Tests that the base runtime of `deno task test:binary` cannot pass. A test that passes with it must not be here. */
export const SKIPS: readonly Skip[] = [
  {
    reason: "node:http2 lacks what grpc-js calls, such as getDefaultSettings",
    tests: {
      "tests/integration/cli/client_test.ts": ["client tells that a domain is unknown: grpc-js"],
      "tests/integration/program/grpc_test.ts": [
        "gRPC by grpc-js over TCP: a real client is limited, across reconnects",
        "gRPC by grpc-js over unix: a real client is limited, across reconnects",
        "gRPC by grpc-js: what one service answers",
      ],
      "tests/integration/program/process_test.ts": [
        "process: streams that are reset while they are being refused end nothing",
      ],
    },
  },
  {
    reason: "exports by node:http end with the second one, with the deno run of that release too",
    tests: {
      "tests/integration/telemetry/otlp_metrics_test.ts": [
        "metrics over OTLP: http/json, 1 threads: counters, gauges and histograms",
        "metrics over OTLP: http/protobuf, 1 threads: counters, gauges and histograms",
      ],
    },
  },
  {
    reason: "the same: how many exports it takes depends on the moment",
    isUnsteady: true,
    tests: {
      "tests/integration/telemetry/otlp_metrics_test.ts": [
        "metrics over OTLP: an outage of the collector is logged once, and nothing is lost",
      ],
      "tests/integration/webhook_program/front_door_test.ts": [
        "webhooks: a span for each trigger, step and attempt",
      ],
    },
  },
  {
    reason: "node:tls answers no handshake on a connection that was accepted before",
    tests: {
      "tests/integration/cli/bench_test.ts": [
        "bench over TLS: authorities, client certificates, and what is missing",
      ],
      "tests/integration/cli/client_test.ts": [
        "client: TLS to an IP address, client certificates, and the cause when only one side uses TLS",
      ],
      "tests/integration/cli/health_test.ts": [
        "health over TLS: any certificate of one's own, elsewhere one that is trusted",
      ],
    },
  },
  {
    reason: "the lock that replaces FsFile.tryLockSync is not seen by the lock that the test takes",
    tests: {
      "tests/integration/webhooks/store_files_test.ts": [
        "a process whose lock file is replaced stops its work while another process holds the new one",
      ],
    },
  },
];
