import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { TestGroup } from "./test_groups.ts";

/**
 * What the runner is to run: each test file would load its own graph of modules, so modules in this folder import several of
 * them. A failure is reported with the file that its test is in. What is no test file, or would be alone, stays as it is.
 */
export async function testModules(
  { name, places, filesPerModule }: TestGroup,
  { root, folder }: { readonly root: string; readonly folder: string },
): Promise<readonly string[]> {
  const together = places.filter((place) => place.endsWith("_test.ts") && !LEAVES_TIMERS.includes(place));
  const count = Math.ceil(together.length / filesPerModule);
  if (count === together.length) return places;
  // Neighbours are often alike: in turn, those that take long do not meet in one module.
  const modules = Array.from(
    { length: count },
    (_, module) => together.filter((_, index) => index % count === module),
  );
  const paths = await Promise.all(modules.map(async (files, index) => {
    const path = join(folder, `${name.replaceAll(/[ /]/g, "_")}_${index + 1}_test.ts`);
    const lines = files.map((file) => `import ${JSON.stringify(pathToFileURL(resolve(root, file)).href)};\n`);
    await Deno.writeTextFile(path, lines.join(""));
    return path;
  }));
  return [...paths, ...places.filter((place) => !together.includes(place))];
}

/**
 * Files that call a gRPC server which is not there: grpc-js waits to try again after its client was closed, for which the
 * next test of their thread would be blamed.
 */
export const LEAVES_TIMERS: readonly string[] = [
  "tests/integration/cli/client_test.ts",
  "tests/integration/cli/client_tls_test.ts",
  "tests/integration/cli/health_test.ts",
  "tests/integration/settings/settings_xds_test.ts",
];
