import { leaveRate } from "../../../harness/dispatcher_loads.ts";

Deno.test("130 endpoints that hang leave 1 that answer their rate", () =>
  leaveRate({ hanging: 130, healthy: 1 }));
