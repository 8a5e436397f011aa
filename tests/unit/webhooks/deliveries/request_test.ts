import { assertEquals } from "@std/assert";
import { signingSecret } from "../../../../src/webhooks/deliveries/request.ts";
import type { EndpointSecret } from "../../../../src/webhooks/model/records.ts";

const HOUR = 3_600_000;

/** A secret by when it was made and when it becomes active, in hours. */
function secret(id: string, createdAt: number, activeAt: number): EndpointSecret {
  const sealed = { keyId: "k", bytes: new Uint8Array() };
  return { id, sealed, createdAt: createdAt * HOUR, activeAt: activeAt * HOUR };
}

const FIRST = secret("first", 0, 0);
const STAGED = secret("staged", 1, 25);
const URGENT = secret("urgent", 2, 2);

const CASES: readonly {
  readonly name: string;
  readonly secrets: readonly EndpointSecret[];
  readonly hour: number;
  readonly signs: string | undefined;
}[] = [
  { name: "none", secrets: [], hour: 1, signs: undefined },
  { name: "the only one", secrets: [FIRST], hour: 1, signs: "first" },
  { name: "the only one, after the clock was set back", secrets: [FIRST], hour: -1, signs: "first" },
  { name: "none is active yet", secrets: [STAGED, FIRST], hour: -1, signs: "first" },
  { name: "a staged one before its time", secrets: [STAGED, FIRST], hour: 24.9, signs: "first" },
  { name: "a staged one at its time", secrets: [STAGED, FIRST], hour: 25, signs: "staged" },
  { name: "one that overtook a staged one", secrets: [URGENT, STAGED, FIRST], hour: 3, signs: "urgent" },
  { name: "the overtaken one at its time", secrets: [URGENT, STAGED, FIRST], hour: 25, signs: "urgent" },
];

for (const { name, secrets, hour, signs } of CASES) {
  Deno.test(`signing secret: ${name}`, () => {
    assertEquals(signingSecret(secrets, hour * HOUR)?.id, signs);
  });
}
