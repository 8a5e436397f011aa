import { assertEquals } from "#assert";
import type { LimitCall } from "../../../../src/webhooks/model/limit_call.ts";
import { checkLimit, limitDescriptors } from "../../../../src/webhooks/api/trigger_limit.ts";
import { refusalOf } from "./refusal_fixture.ts";

const LIMIT = '{"domain":"edge","descriptors":[{"customer":"{{ input.customer }}"}]}';
const KEY_BYTES = "customer".length;

Deno.test("trigger limit: what a caller says is never too long to be decided on", async () => {
  const asked: number[] = [];
  const ask: LimitCall = (_, [descriptor]) => {
    asked.push(descriptor?.[0]?.[1].length ?? 0);
    // As the decision service does with more.
    return Promise.reject(new Error("too long"));
  };
  const tooLong = ["c".repeat(8_193 - KEY_BYTES), "ä".repeat(4_093), "c".repeat(1_000_000)];
  for (const customer of tooLong) {
    for (const onLimitError of ["allow", "deny"] as const) {
      const call = checkLimit({ limit: LIMIT, onLimitError }, limitDescriptors(LIMIT, { customer }), ask);
      const problem = await refusalOf(() => call);
      assertEquals([problem.status, problem.code, problem.field], [422, "limit_value_too_long", "body"]);
    }
  }
  assertEquals(asked, []);
  for (const customer of ["c".repeat(8_192 - KEY_BYTES), "ä".repeat(4_092)]) {
    await checkLimit({ limit: LIMIT, onLimitError: "allow" }, limitDescriptors(LIMIT, { customer }), ask);
  }
  assertEquals(asked, [8_184, 4_092]);
});

Deno.test("trigger limit: descriptors keep the order of their keys, which rules match", async () => {
  const limit = '{"domain":"edge","descriptors":[{"tier":"{{ input.tier }}","__proto__":"p","7":"seven"}]}';
  const asked: unknown[] = [];
  const ask: LimitCall = (...question) => {
    asked.push(question);
    return Promise.resolve({ code: "OK" });
  };
  await checkLimit({ limit, onLimitError: "deny" }, limitDescriptors(limit, { tier: "gold" }), ask);
  assertEquals(asked, [["edge", [[["tier", "gold"], ["__proto__", "p"], ["7", "seven"]]]]]);
});
