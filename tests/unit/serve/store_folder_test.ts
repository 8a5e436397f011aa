import { assertEquals } from "@std/assert";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { storeFolderProblem } from "../../../src/serve/store_folder.ts";

const CASES: readonly (readonly [path: string, settings: Record<string, string>, isBad: boolean])[] = [
  ["/srv/data/weir.db", { RUNTIME_ROOT: "/srv/root" }, false],
  ["/srv/weir.db", { RUNTIME_ROOT: "/srv/root" }, true],
  ["/srv/root/../weir.db", { RUNTIME_ROOT: "/srv/root/" }, true],
  ["/srv/root/weir.db", { RUNTIME_ROOT: "/srv/root" }, true],
  ["/srv/root/a/weir.db", { RUNTIME_ROOT: "/srv/root", RUNTIME_SUBDIRECTORY: "a" }, true],
  ["/srv/root/a/config/weir.db", { RUNTIME_ROOT: "/srv/root", RUNTIME_SUBDIRECTORY: "a" }, true],
  ["/srv/flows/weir.db", { WORKFLOW_DIRECTORY: "/srv/flows" }, true],
  ["/etc/weir/weir.db", { GRPC_SERVER_TLS_CERT: "/etc/weir/tls.crt" }, true],
  ["/etc/weir/weir.db", { HTTP_SERVER_TLS_KEY: "/etc/weir/tls.key" }, true],
  ["data/weir.db", { RUNTIME_ROOT: "config" }, false],
];

for (const [path, environment, isBad] of CASES) {
  Deno.test(`a store at "${path}" with ${JSON.stringify(environment)} is ${isBad ? "warned of" : "fine"}`, () => {
    const { settings } = readSettings({ BACKEND_TYPE: "memory", ...environment });
    const problem = storeFolderProblem(path, settings);
    assertEquals(problem?.includes(path), isBad ? true : undefined);
  });
}
