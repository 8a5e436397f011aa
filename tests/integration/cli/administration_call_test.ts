import { assertEquals } from "#assert";
import { ADMINISTRATION_COMMANDS } from "../../../src/cli/administration_commands.ts";
import { type Got, PlayedAdministration, TOKEN, words } from "../../harness/administration_fixture.ts";

const ID = "3b241101-e2bb-4255-8caf-4136c566a962";

/** Command lines, and the call that each makes: method, path, query, idempotency key and body. */
const CALLS: Readonly<Record<string, string>> = {
  "endpoints list": "GET /endpoints",
  "endpoints list --limit 7 --cursor 'a b&c'": "GET /endpoints?cursor=a+b%26c&limit=7",
  "endpoints add https://shop.example/hook": 'POST /endpoints {"url":"https://shop.example/hook"}',
  "endpoints add https://shop.example/hook --event workflow.* --event agent.reply.completed --concurrency 9 \
    --description 'the shop' --header 'X-Api-Key: a: b ' --header x-two:2 --attempt-timeout 1m30s \
    --standard-webhooks --disabled":
    'POST /endpoints {"url":"https://shop.example/hook","events":["workflow.*","agent.reply.completed"],' +
    '"description":"the shop","headers":{"X-Api-Key":"a: b","x-two":"2"},"concurrency":9,"timeoutMs":90000,' +
    '"standardWebhooks":true,"enabled":false}',
  [`endpoints show ${ID}`]: `GET /endpoints/${ID}`,
  "endpoints show ../triggers/x?y#z": "GET /endpoints/..%2Ftriggers%2Fx%3Fy%23z",
  [`endpoints edit ${ID} --to https://new.example/ --enable`]:
    `PATCH /endpoints/${ID} {"url":"https://new.example/","enabled":true}`,
  [`endpoints edit --disable --no-headers --default-attempt-timeout --standard-webhooks=false ${ID}`]:
    `PATCH /endpoints/${ID} {"standardWebhooks":false,"headers":null,"timeoutMs":null,"enabled":false}`,
  [
    "endpoints add https://shop.example/ --filter 'customer.plan=pro, team' " +
    `--filter 'note="a, \\"b\\"",100,1.10,007,true,null,"100","true"'`
  ]: 'POST /endpoints {"url":"https://shop.example/","filter":{"customer.plan":["pro","team"],' +
    '"note":["a, \\"b\\"",100,1.10,"007",true,null,"100","true"]}}',
  [
    "endpoints add https://shop.example/ " +
    `--filter 'total={"greater":1.10,"less":12345678901234567890}' --filter 'any=[{"a":[1]},{"b":["x"]}]'`
  ]: 'POST /endpoints {"url":"https://shop.example/","filter":' +
    '{"total":{"greater":1.10,"less":12345678901234567890},"any":[{"a":[1]},{"b":["x"]}]}}',
  [`endpoints edit ${ID} --no-filter`]: `PATCH /endpoints/${ID} {"filter":null}`,
  "endpoints add https://shop.example/ --rate-limit 10/second --rotation-overlap 24h --on-gone disable":
    'POST /endpoints {"url":"https://shop.example/","rateLimit":{"unit":"second","requestsPerUnit":10},' +
    '"rotationOverlapMs":86400000,"onGone":"disable"}',
  [`endpoints edit ${ID} --no-rate-limit --no-rotation-overlap --no-on-gone`]:
    `PATCH /endpoints/${ID} {"rateLimit":null,"rotationOverlapMs":null,"onGone":null}`,
  [`endpoints add https://shop.example/ --template '{"a": "{{ event }}", "n": 1.10}'`]:
    'POST /endpoints {"url":"https://shop.example/","template":{"a":"{{ event }}","n":1.10}}',
  [`endpoints edit ${ID} --no-template --format cloudevents`]:
    `PATCH /endpoints/${ID} {"format":"cloudevents","template":null}`,
  "endpoints add https://shop.example/ --auth oauth2 --auth-token-url https://login.example/ --auth-client-id weir \
    --auth-scope 'a b' --auth-audience hooks --auth-credentials-in body":
    'POST /endpoints {"url":"https://shop.example/","authentication":{"type":"oauth2",' +
    '"tokenUrl":"https://login.example/","clientId":"weir","scope":"a b","audience":"hooks","credentialsIn":"body"}}',
  [`endpoints edit ${ID} --no-auth --no-tls`]: `PATCH /endpoints/${ID} {"authentication":null,"tls":null}`,
  [`endpoints test ${ID} --event order.paid --data {"customer":{"id":12345678901234567890}}`]:
    `POST /endpoints/${ID}/test {"event":"order.paid","data":{"customer":{"id":12345678901234567890}}}`,
  [`endpoints test ${ID}`]: `POST /endpoints/${ID}/test`,
  [`endpoints delete ${ID}`]: `DELETE /endpoints/${ID}`,
  [`endpoints rotate ${ID}`]: `POST /endpoints/${ID}/rotate`,
  [`endpoints rotate ${ID} --active-in 0`]: `POST /endpoints/${ID}/rotate {"activeIn":"0"}`,
  [`endpoints replay ${ID} --since 2026-01-01T00:00:00Z --event 'order.*' --filter plan=pro`]:
    `POST /endpoints/${ID}/replay {"since":"2026-01-01T00:00:00.000Z","events":["order.*"],` +
    '"filter":{"plan":["pro"]}}',
  [`endpoints recover ${ID} --since 36h --dry-run`]: `POST /endpoints/${ID}/recover ` +
    '{"since":"2026-01-30T00:00:00.000Z","dryRun":true,"until":"2026-01-31T12:00:00.000Z"}',
  [`endpoints recover ${ID} --since 2026-01-01T01:00:00+01:00 --until 2026-01-02T00:00:00Z`]:
    `POST /endpoints/${ID}/recover ` +
    '{"since":"2026-01-01T00:00:00.000Z","until":"2026-01-02T00:00:00.000Z"}',
  "triggers list": "GET /triggers",
  "triggers create order-intake --workflow order-intake":
    'POST /triggers {"name":"order-intake","workflow":"order-intake"}',
  "triggers create t --workflow w --require-idempotency-key --on-body-mismatch reject --limit-domain edge \
    --limit-descriptor 'customer={{ input.customer }},7=a=b' --limit-descriptor all= --on-limit-error allow --disabled":
    'POST /triggers {"name":"t","workflow":"w","requireIdempotencyKey":true,"onBodyMismatch":"reject",' +
    '"limit":{"domain":"edge","descriptors":[{"customer":"{{ input.customer }}","7":"a=b"},{"all":""}]},' +
    '"onLimitError":"allow","enabled":false}',
  [`triggers show ${ID}`]: `GET /triggers/${ID}`,
  [`triggers edit ${ID} --no-limit --workflow w2`]: `PATCH /triggers/${ID} {"workflow":"w2","limit":null}`,
  [`triggers delete ${ID}`]: `DELETE /triggers/${ID}`,
  [`triggers rotate ${ID}`]: `POST /triggers/${ID}/rotate`,
  [`triggers revoke ${ID} key-1`]: `DELETE /triggers/${ID}/keys/key-1`,
  [`triggers revoke-secret ${ID} s-1`]: `DELETE /triggers/${ID}/secrets/s-1`,
  "triggers create hub --workflow w --verify github":
    'POST /triggers {"name":"hub","workflow":"w","verify":{"scheme":"github"}}',
  "triggers create t --workflow w --accept form --accept text --answer 200 --pass-header X-Topic":
    'POST /triggers {"name":"t","workflow":"w","accept":["form","text"],"answer":200,"passHeaders":["X-Topic"]}',
  [`triggers edit ${ID} --no-accept --no-answer --no-pass-headers`]:
    `PATCH /triggers/${ID} {"accept":null,"answer":null,"passHeaders":null}`,
  [`triggers edit ${ID} --verify stripe --tolerance 60s`]:
    `PATCH /triggers/${ID} {"verify":{"scheme":"stripe","toleranceSeconds":60}}`,
  "triggers call order-intake": 'POST /triggers/order-intake/call {"data":{}}',
  [`triggers call ${ID} --data '{"id": 12345678901234567890}' --idempotency-key 'k 1'`]:
    `POST /triggers/${ID}/call [k 1] {"data":{"id":12345678901234567890}}`,
  "triggers call hub --event push --header 'X-GitHub-Delivery: 7' --header x-a:b":
    'POST /triggers/hub/call {"event":"push","headers":{"X-GitHub-Delivery":"7","x-a":"b"},"data":{}}',
  "event-keys list": "GET /event-keys",
  "event-keys create agents --kind agent.* --kind *":
    'POST /event-keys {"name":"agents","kinds":["agent.*","*"]}',
  [`event-keys show ${ID}`]: `GET /event-keys/${ID}`,
  [`event-keys delete ${ID}`]: `DELETE /event-keys/${ID}`,
  "workflows list --limit 2 --cursor c": "GET /workflows?cursor=c&limit=2",
  "workflows show 'my file.yaml'": "GET /workflows/my%20file.yaml",
  "counters peek --domain shop --descriptors 'account=a b' --descriptors k=,l=m=n":
    'POST /counters/peek {"domain":"shop","descriptors":[{"entries":[{"key":"account","value":"a b"}]},' +
    '{"entries":[{"key":"k","value":""},{"key":"l","value":"m=n"}]}]}',
  "counters reset --domain shop --descriptors account=bob":
    'POST /counters/reset {"domain":"shop","descriptors":[{"entries":[{"key":"account","value":"bob"}]}]}',
  "events post a.b": 'POST /events {"event":"a.b","data":{}}',
  [`events post a.b --data '{"n": 12345678901234567890, "x": 1.10}' --idempotency-key 'k 1'`]:
    'POST /events [k 1] {"event":"a.b","data":{"n":12345678901234567890,"x":1.10}}',
  "events list --event a.b --since 1h --until 2026-01-31T11:30:00Z": `GET /events?event=a.b&since=${
    encodeURIComponent("2026-01-31T11:00:00.000Z")
  }&until=2026-01-31T11%3A30%3A00.000Z`,
  [`events show ${ID}`]: `GET /events/${ID}`,
  [`events why ${ID} --endpoint e`]: `GET /events/${ID}/why?endpointId=e`,
  [`events erase ${ID}`]: `DELETE /events/${ID}/payload`,
  [`deliveries list --endpoint ${ID} --state failed --event a.b --event-id ${ID}`]:
    `GET /deliveries?endpointId=${ID}&event=a.b&eventId=${ID}&state=failed`,
  [`deliveries show ${ID}`]: `GET /deliveries/${ID}`,
  [`deliveries resend ${ID}`]: `POST /deliveries/${ID}/resend`,
  [`deliveries why ${ID}`]: `GET /deliveries/${ID}`,
  "deliveries pause": "POST /deliveries/pause",
  "deliveries resume": "POST /deliveries/resume",
  "deliveries retry": "POST /deliveries/retry",
  [`deliveries retry --endpoint ${ID} --state retrying --event order.created --since 48h --dry-run`]:
    `POST /deliveries/retry {"endpointId":"${ID}","state":"retrying","event":"order.created",` +
    '"since":"2026-01-29T12:00:00.000Z","dryRun":true}',
  "replays list --state running": "GET /replays?state=running",
  [`replays show ${ID}`]: `GET /replays/${ID}`,
  [`replays cancel ${ID}`]: `POST /replays/${ID}/cancel`,
  "executions list --state queued": "GET /executions?state=queued",
  [`executions show ${ID}`]: `GET /executions/${ID}`,
  [`executions cancel ${ID}`]: `POST /executions/${ID}/cancel`,
  [`executions rerun ${ID}`]: `POST /executions/${ID}/rerun`,
  [`executions rerun ${ID} --idempotency-key 'k 1'`]: `POST /executions/${ID}/rerun [k 1]`,
  "audit --action delivery.failed": "GET /audit?event=delivery.failed",
};

/** The same, with what is read from standard input. */
const READING_CALLS: readonly (readonly [line: string, stdin: string, call: string])[] = [
  [
    "endpoints add https://shop.example/ --headers-file -",
    "X-Api-Key: secret\n\nX-Two: 2\r\n",
    'POST /endpoints {"url":"https://shop.example/","headers":{"X-Api-Key":"secret","X-Two":"2"}}',
  ],
  [
    `endpoints edit ${ID} --auth basic --auth-user weir --auth-password-file -`,
    " p w\n",
    `PATCH /endpoints/${ID} {"authentication":{"type":"basic","user":"weir","password":" p w"}}`,
  ],
  [
    `endpoints edit ${ID} --tls-key -`,
    "-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\n",
    `PATCH /endpoints/${ID} {"tls":{"key":"-----BEGIN PRIVATE KEY-----\\nAA\\n-----END PRIVATE KEY-----\\n"}}`,
  ],
  [
    "triggers create t --workflow w --verify hmac-sha256 --secret-file - --signature-header X-Sign \
      --signature-prefix v1= --signature-encoding base64 --timestamp-header X-Time --tolerance 1m30s \
      --delivery-id-header X-Id",
    " a secret \n",
    'POST /triggers {"name":"t","workflow":"w","verify":{"scheme":"hmac-sha256","header":"X-Sign",' +
    '"prefix":"v1=","encoding":"base64","timestampHeader":"X-Time","toleranceSeconds":90,' +
    '"idempotencyHeader":"X-Id","secret":" a secret "}}',
  ],
  [
    "triggers create t --workflow w --verify custom --secret-file - --signed {id}.{time}.{body} \
      --signature-header X-Sign --signature-prefix v1, --signature-encoding base64 --signature-list ; \
      --timestamp-prefix t= --delivery-id-header X-Id --secret-encoding base64",
    "c2VjcmV0c2VjcmV0",
    'POST /triggers {"name":"t","workflow":"w","verify":{"scheme":"custom","signature":{"header":"X-Sign",' +
    '"prefix":"v1,","encoding":"base64","list":";"},"id":{"header":"X-Id"},"signed":"{id}.{time}.{body}",' +
    '"secretEncoding":"base64","time":{"prefix":"t="},"secret":"c2VjcmV0c2VjcmV0"}}',
  ],
  [
    `triggers edit ${ID} --verify custom --signed {time}{body} --signature-header X-Sign --timestamp-header X-Time`,
    "",
    `PATCH /triggers/${ID} {"verify":{"scheme":"custom","signature":{"header":"X-Sign"},` +
    '"time":{"header":"X-Time"},"signed":"{time}{body}"}}',
  ],
  [
    `triggers rotate ${ID} --secret-file -`,
    "a secret\r\n",
    `POST /triggers/${ID}/rotate {"secret":"a secret"}`,
  ],
  ["triggers call a --data-file -", '{"b": 1}', 'POST /triggers/a/call {"data":{"b":1}}'],
  [
    "events post a.b --data-file -",
    ' {"__proto__": 1e400}\n',
    'POST /events {"event":"a.b","data":{"__proto__":1e400}}',
  ],
];

const ALL = [...Object.entries(CALLS).map(([line, call]) => [line, "", call] as const), ...READING_CALLS];

for (const [line, stdin, call] of ALL) {
  Deno.test(`weir ${line}: is one call of the administration`, async () => {
    await using service = new PlayedAdministration({ body: '{"items":[]}' });
    const { code, stderr } = await service.ran(line, { stdin });
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    assertEquals(service.got.map(shown), [call]);
    const [got] = service.got;
    assertEquals(["accept", "authorization", "content-type"].map((name) => got?.headers[name]), [
      "application/json",
      `Bearer ${TOKEN}`,
      got?.body === "" ? undefined : "application/json",
    ]);
  });
}

Deno.test("the calls above are those of every command", () => {
  const called = ALL.map(([line]) => words(line)).map(([group = "", verb]) =>
    group === "audit" ? group : `${group} ${verb}`
  );
  assertEquals([...new Set(called)].sort(), ADMINISTRATION_COMMANDS.map(({ words }) => words).sort());
});

function shown({ method, path, query, body, headers }: Got): string {
  const asked = new URLSearchParams(query).toString();
  const key = headers["idempotency-key"];
  return [
    `${method} ${path.replace("/api/v1", "")}${asked === "" ? "" : `?${asked}`}`,
    ...key === undefined ? [] : [`[${key}]`],
    ...body === "" ? [] : [body],
  ].join(" ");
}
