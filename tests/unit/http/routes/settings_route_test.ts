import { assertEquals } from "#assert";
import { settingsRoute } from "../../../../src/http/routes/settings_route.ts";
import { administratorWith } from "../../../harness/administrators.ts";
import { debugHandler, HandledHttp } from "../../../harness/http_fixture.ts";

const ADMIN = "the-administration-token-of-this-test";
const DEBUG = "the-debug-token-of-this-test";
const SETTINGS = [{ name: "PORT", value: "8080", source: "default" }];

const TOKENS = { debugToken: DEBUG, administrators: administratorWith(ADMIN) };

Deno.test("/settings: both tokens show the settings, and no other does", async () => {
  const routes = [settingsRoute({ settings: SETTINGS, ...TOKENS })];
  const http = new HandledHttp(debugHandler({ token: DEBUG, routes }));
  const seen: unknown[] = [];
  for (const token of [undefined, DEBUG, ADMIN, "another"]) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await http.fetch("/settings", { headers });
    seen.push([response.status, (await response.json()).settings]);
  }
  assertEquals(seen, [[401, undefined], [200, SETTINGS], [200, SETTINGS], [401, undefined]]);
});
