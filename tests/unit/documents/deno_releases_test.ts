import { assertEquals } from "#assert";
import { checkRuntime } from "../../../src/cli/runtime_check.ts";
import { DENO_RELEASES } from "../../harness/tool_register.ts";

Deno.test("install.md lists the releases of Deno that are tested, and those that refuse grpc-js", async () => {
  const text = await Deno.readTextFile(new URL("../../../docs/install.md", import.meta.url));
  const rows = [...text.matchAll(/^\| (2\.\d+\.\d+) +\| (\w+) +\| (\w+) +\|$/gm)].map((row) => row.slice(1));
  const use = { GRPC_ENGINE: "grpc-js", ALLOW_UNSAFE_DENO: false };
  assertEquals(
    rows,
    DENO_RELEASES.map((release) => {
      return [release, "yes", checkRuntime(release, use)?.refuse === true ? "refused" : "yes"];
    }),
  );
});
