import type { RuleException } from "./test_rules.ts";

/** Files that a rule does not hold for; one that breaks its rule no more is taken off the list. */
export const EXCEPTIONS: Readonly<Record<string, readonly RuleException[]>> = {
  "no test waits more than 100 ms for time to pass": [
    { file: "tests/harness/webhook_fleet_outage.ts", reason: "200 ms" },
    { file: "tests/harness/webhook_hanging.ts", reason: "1000 ms" },
    { file: "tests/harness/webhook_kill_loop.ts", reason: "200 ms" },
    { file: "tests/harness/workflow_kill_loop.ts", reason: "200 ms" },
    { file: "tests/integration/config/xds_stream_test.ts", reason: "400 ms" },
    { file: "tests/integration/program/fleet_clocks_test.ts", reason: "8000 ms" },
    { file: "tests/integration/program/fleet_stopped_test.ts", reason: "11000 ms" },
    { file: "tests/integration/program/ui_live_test.ts", reason: "200 ms" },
    { file: "tests/integration/program/xds_test.ts", reason: "400 ms" },
    { file: "tests/integration/settings/settings_kv_cases.ts", reason: "200 ms" },
    { file: "tests/integration/settings/settings_push_cases.ts", reason: "300 ms" },
    { file: "tests/integration/settings/settings_xds_cases.ts", reason: "400 ms" },
    { file: "tests/integration/webhooks/webhook_shared_store_test.ts", reason: "500 ms" },
  ],
  "only the harness starts processes": [
    { file: "tests/integration/base/folder_events_test.ts", reason: "starts a program" },
    { file: "tests/integration/base/tls_pair_test.ts", reason: "starts a program" },
    { file: "tests/integration/cache/tls_files_test.ts", reason: "starts a program" },
    { file: "tests/integration/config/named_pipe_test.ts", reason: "starts a program" },
    { file: "tests/integration/grpc/tls_test.ts", reason: "starts a program" },
    { file: "tests/integration/loaded_modules_test.ts", reason: "starts a program" },
    { file: "tests/integration/program/grpc_test.ts", reason: "starts a program" },
    { file: "tests/integration/program/interop_test.ts", reason: "starts a program" },
    { file: "tests/integration/program/log_test.ts", reason: "starts a program" },
    { file: "tests/integration/rest/platforms_test.ts", reason: "starts a program" },
    { file: "tests/integration/rest/uncaught_test.ts", reason: "starts a program" },
    { file: "tests/unit/config/file_provider_test.ts", reason: "starts a program" },
    { file: "tests/unit/config/rule_files_test.ts", reason: "starts a program" },
    { file: "tests/unit/config/worker_file_provider_test.ts", reason: "starts a program" },
    { file: "tests/unit/webhooks/receiver_test.ts", reason: "starts a program" },
    { file: "tests/unit/webhooks/recipes_test.ts", reason: "starts a program" },
    { file: "tests/unit/webhooks/workflow_files_test.ts", reason: "starts a program" },
  ],
  "a unit test imports no file of the harness that starts servers": [
    { file: "tests/unit/cache/kv_cluster_test.ts", reason: "still imports tests/harness/redis_cluster.ts" },
    { file: "tests/unit/cache/kv_slots_test.ts", reason: "still imports tests/harness/redis_server.ts" },
    { file: "tests/unit/cache/mc_hosts_test.ts", reason: "still imports tests/harness/memcached.ts" },
    {
      file: "tests/unit/cache/per_second_cache_test.ts",
      reason: "still imports tests/harness/redis_server.ts",
    },
    { file: "tests/unit/cli/store_test.ts", reason: "still imports tests/harness/postgres_server.ts" },
    { file: "tests/unit/stats/sinks_test.ts", reason: "still imports tests/harness/statsd_exporter.ts" },
    {
      file: "tests/unit/webhooks/dispatch_lock_test.ts",
      reason: "still imports tests/harness/child_process.ts",
    },
    {
      file: "tests/unit/webhooks/postgres_connection_test.ts",
      reason: "still imports tests/harness/postgres_server.ts",
    },
    {
      file: "tests/unit/webhooks/postgres_pooler_test.ts",
      reason: "still imports tests/harness/pgbouncer.ts",
    },
    {
      file: "tests/unit/webhooks/postgres_schema_test.ts",
      reason: "still imports tests/harness/child_process.ts",
    },
    {
      file: "tests/unit/webhooks/postgres_transactions_test.ts",
      reason: "still imports tests/harness/postgres_server.ts",
    },
    { file: "tests/unit/webhooks/receiver_test.ts", reason: "still imports tests/harness/child_process.ts" },
    {
      file: "tests/unit/webhooks/secret_box_test.ts",
      reason: "still imports tests/harness/child_process.ts",
    },
    { file: "tests/unit/webhooks/signature_test.ts", reason: "still imports tests/harness/child_process.ts" },
    {
      file: "tests/unit/webhooks/sqlite_schema_test.ts",
      reason: "still imports tests/harness/child_process.ts",
    },
    {
      file: "tests/unit/webhooks/sqlite_store_failure_test.ts",
      reason: "still imports tests/harness/child_process.ts",
    },
    {
      file: "tests/unit/webhooks/store_check_test.ts",
      reason: "still imports tests/harness/postgres_server.ts",
    },
    {
      file: "tests/unit/webhooks/store_files_test.ts",
      reason: "still imports tests/harness/webhook_weir.ts",
    },
    {
      file: "tests/unit/webhooks/store_fixtures_test.ts",
      reason: "still imports tests/harness/webhook_weir.ts",
    },
    {
      file: "tests/unit/webhooks/store_tables_test.ts",
      reason: "still imports tests/harness/postgres_server.ts",
    },
    {
      file: "tests/unit/webhooks/webhook_worker_test.ts",
      reason: "still imports tests/harness/webhook_weir.ts",
    },
  ],
};
