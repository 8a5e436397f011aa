import { assertEquals } from "#assert";
import { hasSettings } from "../../../src/settings/unread_names.ts";

const ENVIRONMENTS: readonly (readonly [env: Readonly<Record<string, string>>, has: boolean])[] = [
  [{}, false],
  [{ PATH: "/bin", HOME: "/root", LANG: "C" }, false],
  [{ KV_URL: "" }, false],
  [{ KV_URL: "localhost:6379" }, true],
  [{ KV_URL_FILE: "/run/secrets/kv" }, true],
  [{ REDIS_URL: "localhost:6379" }, true],
  [{ TAGGED_PUSH_STATS_MOGRIFIER_A_NAME: "a" }, true],
];

for (const [env, has] of ENVIRONMENTS) {
  Deno.test(`hasSettings: ${JSON.stringify(env)}`, () => assertEquals(hasSettings(env), has));
}
