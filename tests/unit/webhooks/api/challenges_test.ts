import { assertEquals } from "#assert";
import { Buffer } from "node:buffer";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { listExecutions } from "../../../../src/webhooks/store/operations/executions.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { codeOf } from "./refusal_fixture.ts";

const SECRET = "a signing secret";
const TOKEN = "a verify token of words";
const PLAIN = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};
const WRONG_METHOD = [405, "method_not_allowed"] as const;

function mac(text: string, secret = SECRET): string {
  return createHmac("sha256", secret).update(text).digest("hex");
}

function slack(bed: WebhookBed, body: string, secret = SECRET) {
  const time = `${Math.floor(bed.clock.now() / 1_000)}`;
  return {
    "x-slack-request-timestamp": time,
    "x-slack-signature": `v0=${mac(`v0:${time}:${body}`, secret)}`,
  };
}

function zoom(bed: WebhookBed, body: string, secret = SECRET) {
  const { "x-slack-request-timestamp": time, "x-slack-signature": signature } = slack(bed, body, secret);
  return { "x-zm-request-timestamp": time, "x-zm-signature": signature };
}

async function check(
  bed: WebhookBed,
  query: string,
  { method = "GET" as "GET" | "HEAD", name = "order-intake" } = {},
) {
  const answer = await bed.service.checkTrigger({ requestId: bed.requestId(), name, method, query });
  const { code } = answer;
  return code === undefined ? answer : [answer.status, code];
}

async function countOf(bed: WebhookBed): Promise<number> {
  return (await bed.store.read(listExecutions, { limit: 10 })).items.length;
}

Deno.test("challenges: Slack gets its text once it has signed, and nothing starts", async () => {
  await using bed = await WebhookBed.open();
  await bed.trigger({ verify: { scheme: "slack", secret: SECRET }, challenge: "slack" });
  const body = '{"token":"t","challenge":"3eZbrw1aB10","type":"url_verification"}';
  const call = {
    requestId: "r",
    name: "order-intake",
    target: "/",
    headers: Object.entries({ "content-type": "application/json", ...slack(bed, body) }),
    body: new TextEncoder().encode(body),
    maxBodyBytes: 1_000,
  };
  const answer = await bed.service.acceptSignedTrigger(call);
  assertEquals(answer, { status: 200, headers: PLAIN, body: "3eZbrw1aB10", isChallenge: true });
  assertEquals((await bed.startSigned(slack(bed, body, "another secret"), body)).status, 401);
  assertEquals((await bed.startSigned({}, body)).status, 401);
  const long = `{"challenge":"${"x".repeat(1_025)}","type":"url_verification"}`;
  assertEquals(codeOf(await bed.startSigned(slack(bed, long), long)), [422, "invalid_challenge"]);
  assertEquals(await countOf(bed), 0);
  assertEquals(bed.log.filter((line) => line.includes("Challenge of a trigger answered")).length, 1);
  const event = '{"type":"event_callback","event_id":"Ev1","challenge":"a"}';
  assertEquals((await bed.startSigned(slack(bed, event), event)).status, 202);
});

Deno.test("challenges: Zoom gets its token signed with the secret that signed the call, also in a rotation", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await bed.trigger({ verify: { scheme: "zoom", secret: SECRET }, challenge: "zoom" });
  await bed.call("POST", `/triggers/${id}/rotate`, { secret: "the next secret" });
  const plainToken = "qgg8vlvZRS6UYooatFL8Aw";
  const body = JSON.stringify({ event: "endpoint.url_validation", payload: { plainToken } });
  for (const secret of [SECRET, "the next secret"]) {
    const { status, body: answer } = await bed.startSigned(zoom(bed, body, secret), body);
    assertEquals([status, answer as object], [200, { plainToken, encryptedToken: mac(plainToken, secret) }]);
  }
  assertEquals((await bed.startSigned(zoom(bed, body, "another secret"), body)).status, 401);
  const signed = body.replace(plainToken, "v0:1700000000:x");
  assertEquals(codeOf(await bed.startSigned(zoom(bed, signed), signed)), [422, "invalid_challenge"]);
  assertEquals(await countOf(bed), 0);
});

Deno.test("challenges: Discord gets an answer to its pings once it has signed, and nothing starts", async () => {
  await using bed = await WebhookBed.open();
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const secret = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url").toString("hex");
  await bed.trigger({ verify: { scheme: "discord", secret }, challenge: "discord" });
  const call = async (body: string, signed = body) => {
    const time = `${Math.floor(bed.clock.now() / 1_000)}`;
    const signature = sign(null, Buffer.from(`${time}${signed}`), privateKey).toString("hex");
    const headers = { "x-signature-ed25519": signature, "x-signature-timestamp": time };
    const answer = await bed.startSigned(headers, body);
    return [answer.status, JSON.stringify(answer.body?.code ?? answer.body ?? "none")];
  };
  const ping = '{"id":"1","application_id":"2","token":"t","type":1,"version":1}';
  assertEquals(await call(ping), [200, '{"type":1}']);
  bed.clock.advance(1_000);
  assertEquals(await call('{"version":1,"application_id":"2","type":0}'), [204, '"none"']);
  assertEquals(await call(ping, "another body"), [401, '"unauthorized"']);
  assertEquals((await bed.startSigned({}, ping)).status, 401);
  assertEquals(await countOf(bed), 0);
  assertEquals(bed.log.filter((line) => line.includes("Challenge of a trigger answered")).length, 2);
  assertEquals((await call('{"type":1,"event":{"type":"ENTITLEMENT_CREATE"}}'))[0], 202);
  assertEquals(await countOf(bed), 1);
});

Deno.test("challenges: Meta shows the token of the trigger, and only its hash is kept", async () => {
  await using bed = await WebhookBed.open();
  const made = await bed.trigger({ challenge: "meta", challengeToken: TOKEN });
  assertEquals([made["challenge"], made["challengeToken"], made["challengeTokenHash"]], [
    "meta",
    undefined,
    undefined,
  ]);
  const query = (token: string, text = "1158201444") =>
    new URLSearchParams({ "hub.mode": "subscribe", "hub.challenge": text, "hub.verify_token": token })
      .toString();
  assertEquals(await check(bed, query(TOKEN)), {
    status: 200,
    headers: PLAIN,
    body: "1158201444",
    isChallenge: true,
  });
  for (
    const given of [
      query("another token of words"),
      query(""),
      query(TOKEN, "x".repeat(1_025)),
      query(TOKEN, "<script>\n"),
      query(TOKEN).replace("hub.mode", "mode"),
      `${query(TOKEN)}&hub.verify_token=${encodeURIComponent(TOKEN)}`,
      `${query(TOKEN)}&hub.mode=unsubscribe`,
      "",
    ]
  ) assertEquals(await check(bed, given), [...WRONG_METHOD], given.slice(0, 100));
  assertEquals(await check(bed, query(TOKEN), { method: "HEAD" }), [...WRONG_METHOD]);
  assertEquals(await check(bed, query(TOKEN), { name: made.id }), [...WRONG_METHOD]);
  assertEquals(await check(bed, query(TOKEN), { name: "unknown" }), [...WRONG_METHOD]);
  const patch = (change: unknown) => bed.call("PATCH", `/triggers/${made.id}`, change);
  await patch({ challengeToken: "the next verify token" });
  assertEquals(await check(bed, query(TOKEN)), [...WRONG_METHOD]);
  assertEquals(await check(bed, query("the next verify token", "2")), {
    status: 200,
    headers: PLAIN,
    body: "2",
    isChallenge: true,
  });
  await patch({ enabled: false });
  assertEquals(await check(bed, query("the next verify token")), [...WRONG_METHOD]);
  await patch({ enabled: true, challenge: null });
  assertEquals(await check(bed, query("the next verify token")), [...WRONG_METHOD]);
  const texts = JSON.stringify([bed.log, (await bed.call("GET", "/audit")).body]);
  assertEquals([TOKEN, "the next verify token"].filter((token) => texts.includes(token)), []);
});

Deno.test("challenges: Dropbox and Microsoft sign no check; the text is returned as plain text", async () => {
  await using bed = await WebhookBed.open();
  await bed.trigger({ name: "dropbox", challenge: "dropbox" });
  await bed.trigger({ name: "graph", challenge: "microsoft", verify: { scheme: "gitlab", secret: SECRET } });
  const html = "<script>alert(1)</script>";
  const query = `challenge=${encodeURIComponent(html)}`;
  assertEquals(await check(bed, query, { name: "dropbox" }), {
    status: 200,
    headers: PLAIN,
    body: html,
    isChallenge: true,
  });
  assertEquals(await check(bed, "validationToken=a", { name: "graph" }), [...WRONG_METHOD]);
  const post = async (name: string, search: string) => {
    const target = `/api/v1/workflows/triggers/${name}${search}`;
    const call = { requestId: "r", name, target, headers: [], body: new Uint8Array(), maxBodyBytes: 1_000 };
    const { status, headers, body } = await bed.service.acceptSignedTrigger(call);
    return status === 200 ? [status, headers, body] : status;
  };
  assertEquals(await post("graph", "?validationToken=Validation%3A%20a"), [200, PLAIN, "Validation: a"]);
  assertEquals(await post("graph", "?validationToken=a?b=c"), [200, PLAIN, "a?b=c"]);
  assertEquals(await post("graph", ""), 401);
  assertEquals(await post("graph", `?validationToken=${"x".repeat(1_025)}`), 401);
  assertEquals(await post("dropbox", "?validationToken=a"), 401);
  assertEquals(await post("unknown", "?validationToken=a"), 401);
  assertEquals(await countOf(bed), 0);
});

Deno.test("challenges: a probe by GET or HEAD gets 200 where the trigger has it", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await bed.trigger({ probe: true });
  await bed.trigger({ name: "closed" });
  for (const method of ["GET", "HEAD"] as const) {
    const answer = await check(bed, "a=b", { method });
    assertEquals(answer, { status: 200, headers: PLAIN, body: "", isChallenge: true });
    assertEquals(await check(bed, "", { method, name: "closed" }), [...WRONG_METHOD]);
  }
  await bed.call("PATCH", `/triggers/${id}`, { probe: false });
  assertEquals(await check(bed, ""), [...WRONG_METHOD]);
});

Deno.test("challenges: a wrong field is named", async () => {
  await using bed = await WebhookBed.open();
  const base = { name: "t", workflow: "order-intake" };
  const table: readonly (readonly [object, string, string])[] = [
    [{ challenge: "github" }, "challenge", "expected one of slack, zoom, meta, microsoft, dropbox, discord"],
    [{ challenge: "slack" }, "challenge", "slack requires verify"],
    [{ challenge: "zoom" }, "challenge", "zoom requires verify"],
    [{ challenge: "microsoft" }, "challenge", "microsoft requires verify"],
    [{ challenge: "discord" }, "challenge", "discord requires verify"],
    ...(["slack", "zoom", "discord"] as const).map((challenge) =>
      [
        { challenge, verify: { scheme: "gitlab" } },
        "challenge",
        `${challenge} does not sign as gitlab; expected ${challenge} or custom`,
      ] as const
    ),
    [{ challenge: "meta" }, "challengeToken", "it is required with the challenge meta"],
    [{ challenge: "meta", challengeToken: "short" }, "challengeToken", "expected at least 16 characters"],
    [
      { challenge: "dropbox", challengeToken: TOKEN },
      "challengeToken",
      "only the challenge meta has a token",
    ],
    [{ challengeToken: TOKEN }, "challengeToken", "only the challenge meta has a token"],
    [{ probe: "yes" }, "probe", "expected true or false"],
  ];
  for (const [fields, field, reason] of table) {
    const { status, body } = await bed.call("POST", "/triggers", { ...base, ...fields });
    assertEquals([status, body.field, body["detail"]], [422, field, `Cannot use "${field}": ${reason}`]);
  }
});

Deno.test("challenges: checks by anyone write a line a second at most", async () => {
  await using bed = await WebhookBed.open();
  await bed.trigger({ challenge: "dropbox" });
  await bed.trigger({ name: "meta", challenge: "meta", challengeToken: TOKEN });
  const wrong = "hub.mode=subscribe&hub.challenge=1&hub.verify_token=x";
  for (let n = 0; n < 50; n++) {
    await check(bed, "challenge=a");
    await check(bed, wrong, { name: "meta" });
  }
  const lines = (text: string) =>
    bed.log.filter((line) => line.includes(`Challenge of a trigger ${text}`)).length;
  assertEquals([lines("answered"), lines("refused")], [1, 1]);
  bed.clock.advance(1_000);
  await check(bed, "challenge=a");
  assertEquals([lines("answered"), lines("refused")], [2, 1]);
});
