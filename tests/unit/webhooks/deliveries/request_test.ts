import { assertEquals } from "#assert";
import { signature, standardWebhooksHeaders } from "../../../../src/webhooks/model/signature.ts";
import { signingSecrets } from "../../../../src/webhooks/model/signing_secrets.ts";
import type { EndpointSecret } from "../../../../src/webhooks/model/records.ts";
import { verify } from "../../../../src/webhooks/receiver.ts";
import { addEndpointSecret } from "../../../../src/webhooks/store/operations/endpoints.ts";
import { DispatcherBed, SECRET } from "../../../harness/dispatcher_fixture.ts";

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
  /** In hours. */
  readonly overlap?: number;
  readonly signs: string;
}[] = [
  { name: "none", secrets: [], hour: 1, signs: "" },
  { name: "the only one", secrets: [FIRST], hour: 1, signs: "first" },
  { name: "the only one, after the clock was set back", secrets: [FIRST], hour: -1, signs: "first" },
  { name: "none is active yet", secrets: [STAGED, FIRST], hour: -1, signs: "first" },
  { name: "a staged one before its time", secrets: [STAGED, FIRST], hour: 24.9, signs: "first" },
  { name: "a staged one at its time", secrets: [STAGED, FIRST], hour: 25, signs: "staged" },
  { name: "one that overtook a staged one", secrets: [URGENT, STAGED, FIRST], hour: 3, signs: "urgent" },
  { name: "the overtaken one at its time", secrets: [URGENT, STAGED, FIRST], hour: 25, signs: "urgent" },
  { name: "an overlap without a rotation", secrets: [FIRST], hour: 1, overlap: 24, signs: "first" },
  ...overlapCases("a staged one", [STAGED, FIRST], [
    [-1, "first"],
    [20.9, "first"],
    [21, "first staged"],
    [24.9, "first staged"],
    [25, "staged first"],
    [28.9, "staged first"],
    [29, "staged"],
  ]),
  ...overlapCases("one that overtook a staged one", [URGENT, STAGED, FIRST], [
    [2, "urgent first"],
    [5.9, "urgent first"],
    [6, "urgent"],
    [22, "urgent"],
    [26, "urgent"],
  ]),
  ...overlapCases("two rotations close to each other", [secret("last", 4, 28), STAGED, FIRST], [
    [23, "first staged"],
    [25, "staged last first"],
    [28, "last staged"],
    [32, "last"],
  ]),
  ...overlapCases("two that are staged", [secret("sooner", 4, 24), STAGED, FIRST], [
    [20, "first sooner"],
    [24, "sooner first"],
    [27, "sooner first"],
    [28, "sooner"],
  ]),
];

function overlapCases(
  name: string,
  secrets: readonly EndpointSecret[],
  table: readonly (readonly [hour: number, signs: string])[],
): readonly (typeof CASES)[number][] {
  return table.map(([hour, signs]) => ({
    name: `${name}, an overlap of 4 h, at ${hour} h`,
    secrets,
    hour,
    overlap: 4,
    signs,
  }));
}

for (const { name, secrets, hour, overlap, signs } of CASES) {
  Deno.test(`signing secrets: ${name}`, () => {
    const rotationOverlapMs = overlap === undefined ? undefined : overlap * HOUR;
    const signing = signingSecrets({ secrets, rotationOverlapMs }, hour * HOUR);
    assertEquals(signing.map(({ id }) => id).join(" "), signs);
  });
}

function textSecret(id: string, activeAt: number, createdAt = activeAt): EndpointSecret {
  const text = `whsec_${btoa(`the secret ${id} of the tests, 32 b`)}`;
  return { id, activeAt, createdAt, sealed: { keyId: "k", bytes: new TextEncoder().encode(text) } };
}

Deno.test("a rotated secret signs from its moment on", async () => {
  await using bed = await DispatcherBed.open();
  const now = bed.clock.now();
  const [old, next] = [textSecret("old", now), textSecret("next", now + 24 * HOUR, now)];
  const id = await bed.endpoint({ secrets: [old] });
  await bed.store.write(addEndpointSecret, id, next, bed.entry("endpoint.rotated"));
  const dispatcher = bed.start();
  const signing = [[0, old], [24 * HOUR - 1, old], [1, next]] as const;
  for (const [count, [advanceMs, wanted]] of signing.entries()) {
    bed.clock.advance(advanceMs);
    await bed.event();
    dispatcher.wake();
    await bed.sent(count + 1);
    const request = bed.sender.sent[count];
    const text = new TextDecoder().decode(wanted.sealed.bytes);
    assertEquals(
      request?.headers["x-svc-signature"],
      await signature(text, request?.body ?? new Uint8Array()),
    );
  }
});

Deno.test("an endpoint's own headers, Standard Webhooks and time-out go with its deliveries", async () => {
  await using bed = await DispatcherBed.open();
  const own = { "x-team": "red", "authorization": "Bearer of the receiver" };
  await bed.endpoint({
    standardWebhooks: true,
    timeoutMs: 2_500,
    headerNames: Object.keys(own),
    headers: { keyId: "k", bytes: new TextEncoder().encode(JSON.stringify(own)) },
  });
  await bed.event();
  bed.start();
  await bed.sent(1);
  const { delivery } = await bed.only();
  const [{ headers = {}, body = new Uint8Array(), timeoutMs } = {}] = bed.sender.sent;
  const timestampSeconds = Math.floor(bed.clock.now() / 1_000);
  const standard = await standardWebhooksHeaders({
    id: delivery.id,
    timestampSeconds,
    body,
    secrets: [SECRET],
  });
  assertEquals(headers, {
    ...own,
    "content-type": "application/json",
    "user-agent": "Weir/0.0.0",
    "x-svc-event": "agent.reply.completed",
    "x-svc-signature": await signature(SECRET, body),
    "x-svc-delivery": delivery.id,
    "x-svc-timestamp": `${timestampSeconds}`,
    ...standard,
  });
  assertEquals([timeoutMs, standard["webhook-id"]], [2_500, delivery.id]);
});

Deno.test("around a rotation with an overlap, receivers with either secret accept what is sent", async () => {
  await using bed = await DispatcherBed.open();
  const now = bed.clock.now();
  const [old, next] = [textSecret("old", now), textSecret("next", now + 24 * HOUR, now)];
  const id = await bed.endpoint({ secrets: [old], rotationOverlapMs: HOUR, standardWebhooks: true });
  await bed.store.write(addEndpointSecret, id, next, bed.entry("endpoint.rotated"));
  const dispatcher = bed.start();
  const [first, both, second] = [[true, false], [true, true], [false, true]];
  const accepted = [[0, first], [23 * HOUR - 1, first], [1, both], [HOUR, both], [HOUR - 1, both], [
    1,
    second,
  ]] as const;
  for (const [count, [advanceMs, expected]] of accepted.entries()) {
    bed.clock.advance(advanceMs);
    await bed.event();
    dispatcher.wake();
    await bed.sent(count + 1);
    const { headers = {}, body = new Uint8Array() } = bed.sender.sent[count] ?? {};
    for (const standardWebhooks of [false, true]) {
      const results = await Promise.all([old, next].map(({ sealed }) => {
        const secrets = [new TextDecoder().decode(sealed.bytes)];
        return verify({ body, headers, secrets, standardWebhooks, now: bed.clock.now() });
      }));
      assertEquals(results.map(({ ok }) => ok), expected, `${count} ${standardWebhooks}`);
    }
    const signatures = headers["webhook-signature"]?.split(" ").length;
    assertEquals(
      [signatures, "x-svc-signature-other" in headers],
      expected === both ? [2, true] : [1, false],
    );
  }
});

Deno.test("a second secret that cannot be decrypted does not keep a delivery from leaving", async () => {
  await using bed = await DispatcherBed.open();
  const now = bed.clock.now();
  const [old, next] = [textSecret("old", now), textSecret("next", now + HOUR, now)];
  await bed.endpoint({ secrets: [next, old], rotationOverlapMs: HOUR });
  await bed.event();
  const text = new TextDecoder().decode(old.sealed.bytes);
  const unseal = ({ bytes }: EndpointSecret["sealed"]) => {
    const opened = new TextDecoder().decode(bytes);
    return opened === text ? Promise.resolve(text) : Promise.reject(new Error("no key"));
  };
  bed.start({ secretBox: { unseal } });
  await bed.sent(1);
  const { headers = {}, body = new Uint8Array() } = bed.sender.sent[0] ?? {};
  assertEquals([headers["x-svc-signature"], headers["x-svc-signature-other"]], [
    await signature(text, body),
    undefined,
  ]);
});
