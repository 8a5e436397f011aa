import { assert, assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { DESCRIBED_ROUTES } from "../../src/http/openapi/described_routes.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const DIST = join(ROOT, "docs/site/dist");

Deno.test("the documentation site builds, all its links resolve, and it can be searched", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "docs:site"],
    cwd: ROOT,
    stdin: "null",
    signal: AbortSignal.timeout(600_000),
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assertEquals(code, 0, text);
  assertMatch(text, /^docs\/site\/dist: \d+ pages, \d+ links, 0 broken$/m);
  const page = await Deno.readTextFile(join(DIST, "webhooks/deliveries.html"));
  const around = [...page.matchAll(/pager-link (\w+)" href="([^"]+)"/g)].map((
    [, side, href],
  ) => [side, href]);
  assertEquals(around, [["prev", "/xds.html"], ["next", "/webhooks/receiving.html"]]);
  const reference = await Deno.readTextFile(join(DIST, "openapi.html"));
  const missing = DESCRIBED_ROUTES.filter(({ operation }) =>
    !reference.includes(`id="${operation.id.toLowerCase()}"`)
  );
  assertEquals(missing.map(({ method, path }) => `${method} ${path}`), []);
  const assets = [...Deno.readDirSync(join(DIST, "assets/chunks"))].map(({ name }) => name);
  assert(assets.some((name) => name.startsWith("@localSearchIndex")), assets.join());
});
