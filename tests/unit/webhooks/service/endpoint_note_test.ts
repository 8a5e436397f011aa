import { assertEquals } from "#assert";
import { endpointNote } from "../../../../src/webhooks/service/metrics.ts";

const NONE = { healthy: 3, failing: 0, disabled_by_admin: 1, disabled_by_weir: 0 };

for (
  const [endpoints, expected] of [
    [NONE, undefined],
    [{ ...NONE, failing: 2 }, "endpoints: 2 failing; see weir endpoints list"],
    [
      { ...NONE, failing: 1, disabled_by_weir: 4 },
      "endpoints: 1 failing, 4 disabled by Weir; see weir endpoints list",
    ],
  ] as const
) {
  Deno.test(`endpoints of the states ${JSON.stringify(endpoints)} degrade the service by ${expected}`, () => {
    assertEquals(endpointNote({ endpoints }), expected);
  });
}
