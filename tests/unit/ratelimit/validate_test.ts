import { assertEquals, assertThrows } from "@std/assert";
import { InvalidRequestError } from "../../../src/ratelimit/errors.ts";
import type { Descriptor, RateLimitRequest } from "../../../src/ratelimit/request.ts";
import { validateRequest } from "../../../src/ratelimit/validate.ts";

const GOOD: Descriptor = { entries: [{ key: "k", value: "v" }] };

function request(...descriptors: Descriptor[]): RateLimitRequest {
  return { domain: "d", hitsAddend: 0, descriptors };
}

const REFUSED: readonly (readonly [name: string, request: RateLimitRequest, field: string])[] = [
  ["an empty domain", { ...request(GOOD), domain: "" }, "domain"],
  ["a long domain", { ...request(GOOD), domain: "d".repeat(8_193) }, "domain"],
  ["no descriptors", request(), "descriptors"],
  ["too many descriptors", request(...Array.from({ length: 1_001 }, () => GOOD)), "descriptors"],
  [
    "too many entries",
    request(GOOD, { entries: Array.from({ length: 65 }, () => ({ key: "k", value: "" })) }),
    "descriptors[1].entries",
  ],
  [
    "an override without a unit",
    request({ ...GOOD, limit: { requestsPerUnit: 1, unit: undefined } }),
    "descriptors[0].limit.unit",
  ],
  [
    "an override beyond 32 bits",
    request({ ...GOOD, limit: { requestsPerUnit: 4_294_967_296, unit: "DAY" } }),
    "descriptors[0].limit.requestsPerUnit",
  ],
];

for (const [name, refused, field] of REFUSED) {
  Deno.test(`validate: ${name} is the fault of ${field}`, () => {
    const error = assertThrows(() => validateRequest(refused));
    assertEquals(error instanceof InvalidRequestError && error.field, field);
  });
}

Deno.test("validate: an invalid request need not name a field", () => {
  assertEquals(new InvalidRequestError("why").field, undefined);
});
