import { assertEquals, assertRejects } from "#assert";
import { SendError } from "../../../../src/net/outbound/send_error.ts";
import { AccessTokens, type VersionedGrant } from "../../../../src/webhooks/deliveries/access_tokens.ts";
import { type OutgoingDelivery, type SendResult } from "../../../../src/webhooks/deliveries/sender.ts";
import { withAccessTokens } from "../../../../src/webhooks/deliveries/token_sender.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

const SECRET = "client secret/é";
const GRANT: VersionedGrant = {
  type: "oauth2",
  tokenUrl: "https://login.test/token",
  clientId: "weir:1",
  clientSecret: SECRET,
  endpointId: "e1",
  version: "1",
};
const { signal } = new AbortController();

type Answer = Response | Error | "hang";

/** A token server by its answers, the last of which is repeated. */
function tokenServer(...answers: readonly (() => Answer)[]) {
  const requests: RequestInit[] = [];
  const clock = new FakeClock();
  const fetch = (_: string, init: RequestInit): Promise<Response> => {
    const answer = answers[Math.min(requests.length, answers.length - 1)]?.() ?? "hang";
    requests.push(init);
    if (answer instanceof Response) return Promise.resolve(answer);
    if (answer instanceof Error) return Promise.reject(answer);
    return new Promise((_, reject) =>
      init.signal?.addEventListener("abort", () => reject(init.signal?.reason))
    );
  };
  return { clock, requests, tokens: new AccessTokens({ fetch, clock }) };
}

let issued = 0;

function issue(members: Readonly<Record<string, unknown>> = { expires_in: 3_600 }): () => Response {
  return () => Response.json({ access_token: `token-${++issued}`, token_type: "Bearer", ...members });
}

Deno.test("access tokens: concurrent deliveries share a request, which has the credentials in the header", async () => {
  issued = 0;
  const { tokens, requests } = tokenServer(issue());
  const got = await Promise.all([1, 2, 3].map(() => tokens.get(GRANT, signal)));
  assertEquals(got.map(({ text }) => text), ["token-1", "token-1", "token-1"]);
  assertEquals((await tokens.get(GRANT, signal)).text, "token-1");
  assertEquals(requests.length, 1);
  const { method, body } = requests[0] ?? {};
  assertEquals([method, body], ["POST", "grant_type=client_credentials"]);
  const header = new Headers(requests[0]?.headers).get("authorization");
  // RFC 6749: form-encoded before they are joined.
  assertEquals(header, `Basic ${btoa("weir%3A1:client+secret%2F%C3%A9")}`);
});

Deno.test("access tokens: scope, audience and credentials in the body", async () => {
  const { tokens, requests } = tokenServer(issue());
  await tokens.get({ ...GRANT, scope: "a b", audience: "https://api.test", credentialsIn: "body" }, signal);
  assertEquals([...new URLSearchParams(String(requests[0]?.body))], [
    ["grant_type", "client_credentials"],
    ["scope", "a b"],
    ["audience", "https://api.test"],
    ["client_id", "weir:1"],
    ["client_secret", SECRET],
  ]);
  assertEquals(new Headers(requests[0]?.headers).get("authorization"), null);
});

Deno.test("access tokens: one is renewed before its end, and is still used if that fails", async () => {
  issued = 0;
  const { tokens, clock, requests } = tokenServer(issue(), issue(), () => new Response("", { status: 503 }));
  const at = async (ms: number) => {
    clock.advance(ms);
    return `${(await tokens.get(GRANT, signal)).text} ${requests.length}`;
  };
  assertEquals(await at(0), "token-1 1");
  assertEquals(await at(3_539_999), "token-1 1");
  assertEquals(await at(1), "token-2 2");
  assertEquals(await at(3_540_000), "token-2 3");
  assertEquals([await at(0), await at(999), await at(1)], ["token-2 3", "token-2 3", "token-2 4"]);
  const { message } = await assertRejects(() => at(60_000));
  assertEquals(message, "no access token: the token server responded with 503");
});

Deno.test("access tokens: the life of a token by the answer", async () => {
  const table: readonly [members: Readonly<Record<string, unknown>>, seconds: number][] = [
    [{}, 300],
    [{ expires_in: null }, 300],
    [{ expires_in: 10 }, 10],
    [{ expires_in: "3599" }, 3_599],
    [{ expires_in: 0.5 }, 0.5],
    [{ expires_in: 1e300 }, 86_400],
    [{ expires_in: 60, token_type: "bearer" }, 60],
    [{ expires_in: 60, token_type: undefined }, 60],
  ];
  for (const [members, seconds] of table) {
    const { tokens, clock } = tokenServer(issue(members));
    const { expiresAt } = await tokens.get(GRANT, signal);
    assertEquals((expiresAt - clock.elapsed()) / 1_000, seconds, JSON.stringify(members));
  }
});

Deno.test("access tokens: a bad answer is a reason that repeats nothing of it", async () => {
  const json = (value: unknown, status = 200) => () => Response.json(value, { status });
  const table: readonly [answer: () => Answer, reason: string][] = [
    [json({ error: "invalid_client" }, 401), "the token server responded with 401 (invalid_client)"],
    [json({ error: SECRET }, 400), "the token server responded with 400"],
    [json({ error: "invalid_grant" }), "the response of the token server has no valid access_token"],
    [json([], 500), "the token server responded with 500"],
    [() => new Response(SECRET), "the response of the token server is not a JSON object"],
    [() => new Response(null, { status: 204 }), "the token server responded with 204"],
    [
      () => new Response(null, { status: 302, headers: { location: "https://other.test/" } }),
      "the token server responded with 302, and redirects are not followed",
    ],
    [json({ access_token: "a b" }), "the response of the token server has no valid access_token"],
    [json({ access_token: "a\nb" }), "the response of the token server has no valid access_token"],
    [json({ access_token: "é" }), "the response of the token server has no valid access_token"],
    [json({ access_token: "" }), "the response of the token server has no valid access_token"],
    [json({ access_token: "a".repeat(8_193) }), "the response of the token server has no valid access_token"],
    [
      json({ access_token: "a", token_type: "mac" }),
      "the token of the token server is not of the type bearer",
    ],
    [json({ access_token: "a", expires_in: -1 }), "the token of the token server has already expired"],
    [json({ access_token: "a", expires_in: 0 }), "the token of the token server has already expired"],
    [
      json({ access_token: "a", expires_in: "soon" }),
      "the response of the token server has no valid expires_in",
    ],
    [json({ access_token: "a", expires_in: {} }), "the response of the token server has no valid expires_in"],
    [() => new Response("x".repeat(65_537)), "the response of the token server has more than 65536 bytes"],
    [() => new Response(endless()), "the response of the token server has more than 65536 bytes"],
    [() => new SendError("connect", "connection refused (10.0.0.1:1)"), "connection refused (10.0.0.1:1)"],
  ];
  for (const [answer, reason] of table) {
    const { tokens } = tokenServer(answer);
    const error = await assertRejects(() => tokens.get(GRANT, signal));
    assertEquals(error.message, `no access token: ${reason}`);
  }
});

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1_024)) });
}

Deno.test("access tokens: failed requests have pauses that grow to half a minute, and a new secret has none", async () => {
  const { tokens, clock, requests } = tokenServer(() => new Response("", { status: 500 }));
  const failed = (grant = GRANT) => assertRejects(() => tokens.get(grant, signal));
  const pauses: number[] = [];
  await failed();
  const reason = "no access token: the token server responded with 500; the next request is possible in 1 s";
  assertEquals((await failed()).message, reason);
  while (requests.length < 8) {
    const before = requests.length;
    let seconds = 0;
    for (; requests.length === before; seconds++) {
      clock.advance(1_000);
      await failed();
    }
    pauses.push(seconds);
  }
  assertEquals(pauses, [1, 2, 4, 8, 16, 30, 30]);
  const before = requests.length;
  await failed({ ...GRANT, version: "2" });
  assertEquals(requests.length, before + 1);
});

Deno.test("access tokens: a silent server ends with its timeout, a delivery with its own one, and all at the end", async () => {
  const { tokens, clock } = tokenServer(() => "hang");
  const first = assertRejects(() => tokens.get(GRANT, signal));
  clock.advance(10_000);
  assertEquals((await first).message, "no access token: the token server did not answer within 10000 ms");
  clock.advance(1_000);
  const sender = withAccessTokens(
    { send: () => Promise.reject(new Error("nothing is sent")) },
    tokens,
    clock,
  );
  const sent = sender.send(delivery(2_000), { signal });
  const aborted = new AbortController();
  const interrupted = sender.send(delivery(60_000), { signal: aborted.signal });
  clock.advance(2_000);
  assertEquals(await sent, { errorKind: "token", error: "no access token within 2000 ms" });
  aborted.abort();
  assertEquals((await interrupted).errorKind, "interrupted");
  const last = assertRejects(() => tokens.get(GRANT, signal));
  tokens.close();
  assertEquals((await last).message, "no access token: nothing is sent any more");
});

Deno.test("access tokens: those of a thousand endpoints are kept, the least used one is requested again", async () => {
  const { tokens, requests } = tokenServer(issue());
  const of = (endpointId: string) => tokens.get({ ...GRANT, endpointId }, signal);
  for (let index = 0; index < 1_000; index++) await of(`e${index}`);
  await of("e0");
  await of("another");
  assertEquals(requests.length, 1_001);
  await of("e0");
  assertEquals(requests.length, 1_001);
  await of("e1");
  assertEquals(requests.length, 1_002);
});

function delivery(timeoutMs = 30_000): OutgoingDelivery {
  return { url: "https://a.test/", headers: { "x-a": "b" }, body: new Uint8Array(), timeoutMs, grant: GRANT };
}

/** Sends deliveries to a receiver with these answers; returns the tokens that it got. */
function receiver(tokens: AccessTokens, clock: FakeClock, answer: (token: string) => SendResult) {
  const seen: string[] = [];
  const sender = withAccessTokens(
    {
      send: ({ headers }) => {
        const token = String(headers["authorization"]);
        seen.push(token);
        return Promise.resolve(answer(token));
      },
    },
    tokens,
    clock,
  );
  return { seen, send: async () => (await sender.send(delivery(), { signal })).status };
}

const REJECTED: SendResult = { status: 401, errorKind: "status", error: "the receiver responded with 401" };

Deno.test("access tokens: a receiver that rejects a token gets another one, once", async () => {
  issued = 0;
  const { tokens, clock, requests } = tokenServer(issue());
  const rejected = new Set<string>();
  const { seen, send } = receiver(tokens, clock, (token) => rejected.has(token) ? REJECTED : { status: 200 });
  assertEquals(await send(), 200);
  rejected.add("Bearer token-1");
  clock.advance(10_000);
  assertEquals([await send(), requests.length], [200, 2]);
  assertEquals(seen, ["Bearer token-1", "Bearer token-1", "Bearer token-2"]);
});

Deno.test("access tokens: a receiver that rejects every token causes no request for each delivery", async () => {
  issued = 0;
  const { tokens, clock, requests } = tokenServer(issue());
  const { seen, send } = receiver(tokens, clock, () => REJECTED);
  for (let count = 0; count < 5; count++) assertEquals(await send(), 401);
  assertEquals([requests.length, seen.length], [1, 5]);
  clock.advance(5_000);
  assertEquals([await send(), await send(), requests.length, seen.length], [401, 401, 2, 8]);
});

Deno.test("access tokens: the same token again is not sent twice, and a failed renewal is the result", async () => {
  const same = tokenServer(issue({ access_token: "the-same" }));
  const one = receiver(same.tokens, same.clock, () => REJECTED);
  await one.send();
  same.clock.advance(5_000);
  assertEquals([await one.send(), same.requests.length, one.seen.length], [401, 2, 2]);

  const { tokens, clock } = tokenServer(issue(), () => new Response("", { status: 500 }));
  const sender = withAccessTokens({ send: () => Promise.resolve(REJECTED) }, tokens, clock);
  await sender.send(delivery(), { signal });
  clock.advance(5_000);
  assertEquals(await sender.send(delivery(), { signal }), {
    errorKind: "token",
    error: "no access token: the token server responded with 500",
  });
});
