import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { TestGroup } from "./test_groups.ts";

/**
 * The modules of a run: each test file would load its own graph of modules, so modules in this folder import
 * several of them. A failure is reported with the file of its test. Other files, such as examples, stay as they
 * are.
 */
export async function testModules(
  { name, places, filesPerModule }: TestGroup,
  { root, folder }: { readonly root: string; readonly folder: string },
): Promise<readonly string[]> {
  const files = places.filter((place) => place.endsWith("_test.ts"));
  const [first, alone] = [LONG, LEAVES_TIMERS].map((list) => files.filter((file) => list.includes(file)));
  const others = files.filter((file) => !ALONE.has(file));
  const count = Math.ceil(others.length / filesPerModule);
  if (count === others.length) return places;
  // Neighbours are often alike: in turn, those that take long do not meet in one module.
  const shared = Array.from(
    { length: count },
    (_, module) => others.filter((_, index) => index % count === module),
  );
  const modules = [...(first ?? []).map((file) => [file]), ...(alone ?? []).map((file) => [file]), ...shared];
  const paths = await Promise.all(modules.map(async (imported, index) => {
    // The runner begins with the first by name.
    const number = String(index).padStart(3, "0");
    const path = join(folder, `${name.replaceAll(/[ /]/g, "_")}_${number}_test.ts`);
    const lines = imported.map((file) =>
      `import ${JSON.stringify(pathToFileURL(resolve(root, file)).href)};\n`
    );
    await Deno.writeTextFile(path, lines.join(""));
    return path;
  }));
  return [...paths, ...places.filter((place) => !files.includes(place))];
}

/**
 * Files that call a gRPC server which is not there: grpc-js waits to try again after its client was closed, for which the
 * next test of their thread would be blamed.
 */
const LEAVES_TIMERS: readonly string[] = [
  "tests/integration/cli/client_test.ts",
  "tests/integration/cli/client_tls_test.ts",
  "tests/integration/cli/health_test.ts",
  "tests/integration/settings/settings_xds_test.ts",
];

/** Files that take longest, begun first: one that began last would run on by itself. */
const LONG: readonly string[] = [
  "tests/contract/webhook_store_test.ts",
  "tests/integration/bench/bench_loads_test.ts",
  "tests/integration/bench/peers_test.ts",
  "tests/integration/documents/shell_examples_test.ts",
  "tests/integration/http/openapi_agreement_test.ts",
  "tests/integration/program/algorithms_fleet_test.ts",
  "tests/integration/program/client_values_test.ts",
  "tests/integration/program/envoy_hostile_clients_test.ts",
  "tests/integration/program/health_states_test.ts",
  "tests/integration/settings/settings_service_test.ts",
  "tests/integration/settings/settings_tls_test.ts",
  "tests/integration/settings/settings_webhook_test.ts",
  "tests/integration/ui/page_administration_test.ts",
  "tests/integration/ui/page_look_test.ts",
  "tests/integration/ui/page_odd_answers_test.ts",
  "tests/integration/webhook_program/limit_events_test.ts",
  "tests/integration/webhook_program/signed_trigger_test.ts",
  "tests/integration/webhook_program/stalled_machine_test.ts",
  "tests/integration/webhook_program/store_trouble_test.ts",
  "tests/integration/webhooks/recipes_test.ts",
  "tests/integration/webhooks/store_move_test.ts",
];

/** Files that replace a function of a class, which a connection of another file would call too. */
const REPLACES_FUNCTIONS: readonly string[] = ["tests/integration/grpc/native/stop_order_test.ts"];

/** Files that share their module with no other. */
export const ALONE: ReadonlySet<string> = new Set([...LEAVES_TIMERS, ...LONG, ...REPLACES_FUNCTIONS]);
