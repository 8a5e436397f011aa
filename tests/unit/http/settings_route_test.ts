import { assertEquals } from "@std/assert";
import type { DebugTokens } from "../../../src/http/bearer_token.ts";
import { settingsRoute } from "../../../src/http/settings_route.ts";
import { administratorWith, NO_ADMINISTRATORS } from "../../harness/administrators.ts";
import { debugHandler, HandledHttp } from "../../harness/http_fixture.ts";

const ADMIN = "the-administration-token-of-this-test";
const ADMINS = administratorWith(ADMIN);
const DEBUG = "the-debug-token-of-this-test";
const SETTINGS = [{ name: "PORT", value: "8080", source: "default" }];

function served(tokens: Partial<DebugTokens>): HandledHttp {
  const given = { debugToken: undefined, administrators: NO_ADMINISTRATORS, ...tokens };
  const routes = [settingsRoute({ settings: SETTINGS, ...given })];
  return new HandledHttp(debugHandler({ token: given.debugToken, routes }));
}

/** The statuses without a token, with that of the debug port, with that of the administration and with another one. */
const RIGHTS:
  readonly (readonly [name: string, tokens: Partial<DebugTokens>, statuses: readonly number[]])[] = [
    ["no token is set", {}, [200, 401, 401, 401]],
    ["only DEBUG_TOKEN is set", { debugToken: DEBUG }, [401, 200, 401, 401]],
    ["only ADMIN_TOKEN is set", { administrators: ADMINS }, [200, 401, 200, 401]],
    ["both are set", { debugToken: DEBUG, administrators: ADMINS }, [401, 200, 200, 401]],
  ];

for (const [name, tokens, statuses] of RIGHTS) {
  Deno.test(`/settings: who sees them where ${name}`, async () => {
    const http = served(tokens);
    const seen: number[] = [];
    for (const token of [undefined, DEBUG, ADMIN, "another"]) {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await http.fetch("/settings", { headers });
      seen.push(response.status);
      const body = await response.json();
      if (response.status === 200) assertEquals(body, { settings: SETTINGS });
      else assertEquals(JSON.stringify(body).includes("8080"), false);
    }
    assertEquals(seen, [...statuses]);
  });
}
