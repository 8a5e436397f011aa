import { assertEquals } from "#assert";
import { type Given, PlayedAdministration } from "../../harness/administration_fixture.ts";

const ID = "3b241101-e2bb-4255-8caf-4136c566a962";

interface Case {
  readonly line: string;
  /** Only its body, or all of it. */
  readonly answer: string | Given;
  readonly code?: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

const ENDPOINT = JSON.stringify({
  id: ID,
  url: "https://shop.example/hook",
  events: ["workflow.*", "a.b"],
  enabled: true,
  description: "",
  secret: "whsec_c2VjcmV0",
});

const CASES: Readonly<Record<string, Case>> = {
  "a list is a table of some of its fields": {
    line: "endpoints list",
    answer: `{"items":[${ENDPOINT},{"id":"x","url":"https://b.example/","events":[],"enabled":false}]}`,
    stdout:
      `id                                    url                        events           enabled  failingSince  description
3b241101-e2bb-4255-8caf-4136c566a962  https://shop.example/hook  workflow.*, a.b  true     -             -
x                                     https://b.example/         -                false    -             -
`,
  },
  "an empty list has the names of its columns": {
    line: "triggers list",
    answer: '{"items":[]}',
    stdout: "id  name  workflow  enabled  createdAt\n",
  },
  "a list that goes on says how": {
    line: "executions list",
    answer: '{"items":[{"id":"1","workflow":"w","status":"queued"}],"nextCursor":"c2"}',
    stdout: "id  workflow  status  startedAt  finishedAt\n1   w         queued  -          -\n",
    stderr: "More: --cursor c2, or --all\n",
  },
  "as JSON it is printed as it came": {
    line: "executions list --json",
    answer: '{"items": [ {"id":12345678901234567890} ],"nextCursor":"c2"}',
    stdout: '{"items": [ {"id":12345678901234567890} ],"nextCursor":"c2"}\n',
  },
  "an endpoint that is enabled again has what it has missed, and the next command": {
    line: `endpoints edit ${ID} --enable`,
    answer: `{"id":"${ID}","enabled":true,"missed":12,"missedSince":"2026-01-31T12:00:00.000Z"}`,
    stdout: `id           ${ID}\nenabled      true\nmissed       12\nmissedSince  2026-01-31T12:00:00.000Z\n`,
    stderr: `Next: weir endpoints recover ${ID} --since 2026-01-31T12:00:00.000Z\n`,
  },
  "one that has missed nothing has no next command": {
    line: `endpoints edit ${ID} --enable`,
    answer: `{"id":"${ID}","enabled":true,"missed":0}`,
    stdout: `id       ${ID}\nenabled  true\nmissed   0\n`,
  },
  "a secret is shown once, and that is said": {
    line: "endpoints add https://shop.example/hook",
    answer: { status: 201, body: ENDPOINT },
    stdout: `id           ${ID}
url          https://shop.example/hook
events       workflow.*, a.b
enabled      true
description  -
secret       whsec_c2VjcmV0
`,
    stderr: "Save the secret now: it is shown only once\n",
  },
  "a key is shown once, and that is said with JSON, too": {
    line: `triggers rotate ${ID} --json`,
    answer: '{"key":"svct_x"}',
    stdout: '{"key":"svct_x"}\n',
    stderr: "Save the key now: it is shown only once\n",
  },
  "a generated secret of a trigger is shown once": {
    line: `triggers rotate ${ID}`,
    answer: '{"secret":"whsec_c2VjcmV0","secretId":"s1"}',
    stdout: "secret    whsec_c2VjcmV0\nsecretId  s1\n",
    stderr: "Save the secret now: it is shown only once\n",
  },
  "a given secret of a trigger is not shown": {
    line: `triggers rotate ${ID}`,
    answer: '{"secretId":"s1"}',
    stdout: "secretId  s1\n",
    stderr: "",
  },
  "records inside of a record are tables": {
    line: `deliveries show ${ID}`,
    answer: JSON.stringify({
      id: ID,
      state: "retrying",
      attempts: [
        { number: 1, status: 503, response: "no\u001b[31m\n" },
        { number: 2, error: "x".repeat(70) },
      ],
      nextAttemptAt: null,
    }),
    stdout: `id             ${ID}
state          retrying
nextAttemptAt  -

attempts:
  number  status  error                                                         response
  1       503     -                                                             no\\u001b[31m\\n
  2       -       ${"x".repeat(59)}…  -
`,
  },
  "the detail of a checked stage is never shortened": {
    line: `endpoints test ${ID}`,
    answer: JSON.stringify({ ok: false, stages: [{ stage: "tls", ok: false, detail: "x".repeat(200) }] }),
    code: 1,
    stdout: `ok  false

stages:
  stage  ok     detail
  tls    false  ${"x".repeat(200)}
`,
  },
  "numbers keep their digits, and other objects are JSON": {
    line: `events show ${ID}`,
    answer: '{"id":12345678901234567890,"data":{"a":[1.10,{"b":"\\u009b"}]},"isErased":false}',
    stdout: 'id        12345678901234567890\ndata      {"a":[1.10,{"b":"\\u009b"}]}\nisErased  false\n',
  },
  "why is one sentence": {
    line: `deliveries why ${ID}`,
    answer: '{"id":"x","why":"The next attempt is due at noon"}',
    stdout: "The next attempt is due at noon\n",
  },
  "why, as JSON": {
    line: `deliveries why ${ID} --json`,
    answer: '{"id":"x","why":"so"}',
    stdout: '{"id":"x","why":"so"}\n',
  },
  "what has no answer is a sentence": {
    line: `triggers revoke ${ID} k1`,
    answer: { status: 204 },
    stdout: `key k1 of trigger ${ID} is revoked\n`,
  },
  "a record names the command to follow": {
    line: "events post a.b",
    answer: { status: 202, body: `{"id":"${ID}","deliveries":1}` },
    stdout: `id          ${ID}\ndeliveries  1\n`,
    stderr: `Next: weir deliveries list --event-id ${ID}\n`,
  },
  "a record of nothing but a table": {
    line: "counters peek --domain d --descriptors a=b",
    answer: '{"descriptors":[{"limited":false,"reason":"no_rule"}]}',
    stdout: "descriptors:\n  limited  reason\n  false    no_rule\n",
  },
  "as YAML, numbers keep their digits": {
    line: `events show ${ID} --output yaml`,
    answer: '{"id":"a b","data":{"x":[1.10,"yes"]},"isErased":false}',
    stdout: 'id: a b\ndata:\n  x:\n    - 1.10\n    - "yes"\nisErased: false\n',
  },
  "a list as YAML has the cursor of the next page, and no hint": {
    line: "executions list --output yaml",
    answer: '{"items":[{"id":"1"}],"nextCursor":"c2"}',
    stdout: 'items:\n  - id: "1"\nnextCursor: c2\n',
  },
  "what has no answer is nothing as YAML": {
    line: `events erase ${ID} --output yaml`,
    answer: { status: 204 },
  },
  "a called trigger names the command to follow": {
    line: "triggers call order-intake",
    answer: { status: 202, body: `{"executionId":"${ID}"}` },
    stdout: `executionId  ${ID}\n`,
    stderr: `Next: weir executions show ${ID}\n`,
  },
  "the errors of files follow their list": {
    line: "workflows list",
    answer: JSON.stringify({
      items: [
        { id: "a", state: "valid", triggerCount: 1, loadedAt: "now", file: "w/a.yaml", problems: [] },
        {
          id: "b.yaml",
          state: "invalid",
          triggerCount: 0,
          file: "w/b.yaml",
          problems: [
            { severity: "error", at: "w/b.yaml:3:1", path: "steps[0]", text: "no\u001b[31m" },
            { severity: "error", at: "w/b.yaml", path: "", text: "unreadable" },
          ],
        },
      ],
      problems: [{ severity: "error", at: "", path: "", text: "too many files" }],
    }),
    stdout: `id      state    triggerCount  loadedAt  file
a       valid    1             now       w/a.yaml
b.yaml  invalid  0             -         w/b.yaml
`,
    stderr: "too many files\nw/b.yaml:3:1: steps[0]: no\\u001b[31m\nw/b.yaml: unreadable\n",
  },
  "a workflow has its errors in full below its steps": {
    line: "workflows show a",
    answer: JSON.stringify({
      id: "a",
      state: "outdated",
      steps: [{ name: "one", kind: "set" }],
      problems: [{ severity: "error", at: "w/a.yaml:1:2", path: "", text: "x".repeat(70) }],
    }),
    stdout: "id     a\nstate  outdated\n\nsteps:\n  name  kind\n  one   set\n",
    stderr: `w/a.yaml:1:2: ${"x".repeat(70)}\n`,
  },
  "a delivery is sent again": {
    line: `deliveries resend ${ID}`,
    answer: { status: 202, body: `{"id":"${ID}"}` },
    stdout: `delivery ${ID} has one more attempt queued\n`,
  },
  "a delivery waits": {
    line: `deliveries resend ${ID}`,
    answer: { status: 202, body: `{"id":"${ID}","why":"its endpoint is disabled"}` },
    stdout: `delivery ${ID} is not sent yet: its endpoint is disabled\n`,
  },
  "what has no answer is nothing as JSON": {
    line: `events erase ${ID} --json`,
    answer: { status: 204 },
  },
  "a check where all is valid": {
    line: `endpoints test ${ID}`,
    answer: '{"ok":true,"stages":[{"stage":"name","ok":true,"detail":"192.0.2.1"}]}',
    stdout: "ok  true\n\nstages:\n  stage  ok    detail\n  name   true  192.0.2.1\n",
  },
  "a list shows how many attempts there were, and the last error": {
    line: "deliveries list",
    answer:
      '{"items":[{"id":"1","event":"a","endpointId":"2","state":"retrying","attempts":[{},{}],"lastError":"reset"}]}',
    stdout: "id  event  endpointId  state     attempts  lastError  nextAttemptAt\n" +
      "1   a      2           retrying  2         reset      -\n",
  },
  "columns have one order, whatever the first row has": {
    line: "counters peek --domain d --descriptors a=b --descriptors c=d",
    answer: '{"descriptors":[{"descriptor":"a=b","limited":false,"reason":"no_rule"},' +
      '{"descriptor":"c=d","windows":[{"limited":true,"cacheKey":"k","limit":1}],"limited":true,"limit":1}]}',
    stdout: `descriptors:
  descriptor  limited  reason   cacheKey  limit
  a=b         false    no_rule  -         -
  c=d         true     -        k         1
`,
  },
  "why of an event, for each endpoint": {
    line: `events why ${ID}`,
    answer:
      `{"eventId":"${ID}","endpoints":[{"endpointId":"1","why":"no"},{"endpointId":"2","url":"u","why":"yes"}]}`,
    stdout: `eventId  ${ID}

endpoints:
  endpointId  url  why
  1           -    no
  2           u    yes
`,
  },
  "a test where a stage fails, by its name of earlier releases": {
    line: `endpoints check ${ID} --json`,
    answer: '{"ok":false,"stages":[]}',
    code: 1,
    stdout: '{"ok":false,"stages":[]}\n',
  },
  "a refusal is one line": {
    line: "triggers create t --workflow w",
    answer: {
      status: 409,
      body:
        '{"title":"Conflict","status":409,"detail":"Cannot make it:\\nthe name is taken","code":"name_taken","requestId":"r1","field":"name"}',
    },
    code: 1,
    stderr:
      'Cannot run "triggers create": 409 name_taken: Cannot make it:\\nthe name is taken (field "name", request r1)\n',
  },
  "a refusal that names its field in the sentence": {
    line: "endpoints list --limit 201",
    answer: {
      status: 422,
      body: '{"detail":"Cannot use \\"limit\\": no","code":"invalid_field","field":"limit"}',
    },
    code: 2,
    stderr: 'Cannot run "endpoints list": 422 invalid_field: Cannot use "limit": no\n',
  },
  "a value that the service rejects is invalid usage": {
    line: "endpoints add ftp://a",
    answer: {
      status: 422,
      body: '{"detail":"Cannot use \\"url\\": no","code":"invalid_field","field":"url"}',
    },
    code: 2,
    stderr: 'Cannot run "endpoints add": 422 invalid_field: Cannot use "url": no\n',
  },
  "the wrong token": {
    line: "audit",
    answer: { status: 401, body: '{"title":"Unauthorized","code":"unauthorized"}' },
    code: 1,
    stderr: 'Cannot run "audit": 401 unauthorized: Unauthorized; ' +
      "ADMIN_TOKEN or --token-file differs from the token of the service\n",
  },
  "a service without administration": {
    line: "audit",
    answer: { status: 404, body: "Not Found" },
    code: 1,
    stderr: 'Cannot run "audit": 404: not an answer of Weir; set ADMIN_TOKEN for the service, and ' +
      "--url to its ADMIN_ADDR if that is set\n",
  },
  "a service with a disabled administration API": {
    line: "audit",
    answer: { status: 404, body: '{"detail":"Cannot find this path","code":"not_found"}' },
    code: 1,
    stderr:
      'Cannot run "audit": 404 not_found: Cannot find this path; set ADMIN_TOKEN for the service, and ' +
      "--url to its ADMIN_ADDR if that is set\n",
  },
  "a record that is not there": {
    line: `events show ${ID}`,
    answer: { status: 404, body: '{"detail":"Cannot find this event","code":"not_found"}' },
    code: 1,
    stderr: 'Cannot run "events show": 404 not_found: Cannot find this event\n',
  },
  "a redirect is not followed": {
    line: "audit",
    answer: { status: 307, headers: { location: "http://127.0.0.1:1/" } },
    code: 1,
    stderr: 'Cannot run "audit": 307: not an answer of Weir\n',
  },
  "an answer that is no object": {
    line: `events show ${ID}`,
    answer: "[1]",
    code: 1,
    stderr: 'Cannot run "events show": the answer of URL is not an object of JSON\n',
  },
  "a list without items": {
    line: "audit",
    answer: '{"items":[1]}',
    code: 1,
    stderr: 'Cannot run "audit": the answer is not a list\n',
  },
};

for (const [name, { line, answer, code = 0, stdout = "", stderr = "" }] of Object.entries(CASES)) {
  Deno.test(`weir ${line}: ${name}`, async () => {
    await using service = new PlayedAdministration(typeof answer === "string" ? { body: answer } : answer);
    const result = await service.ran(line);
    assertEquals({ ...result, stderr: result.stderr.replace(service.url, "URL") }, { code, stdout, stderr });
    assertEquals(service.got.length, 1);
  });
}

const PAGES: readonly Given[] = [
  { body: '{"items":[{"id":"1","event":"a"}],"nextCursor":"c 2"}' },
  { body: '{"items":[{"id":"longer","event":"b"}],"nextCursor":"c3"}' },
  { body: '{"items":[{"id":"3","event":"c"}]}' },
];

Deno.test("weir events list --all: every page, with its filters and its cursor", async () => {
  await using service = new PlayedAdministration(...PAGES);
  assertEquals(await service.ran("events list --all --limit 1"), {
    code: 0,
    stdout:
      "id  event  isErased  createdAt\n1   a      -         -\nlonger  b      -         -\n3       c      -         -\n",
    stderr: "",
  });
  assertEquals(service.got.map(({ query }) => query), [
    { limit: "1" },
    { limit: "1", cursor: "c 2" },
    { limit: "1", cursor: "c3" },
  ]);
});

Deno.test("weir events list --all --json: each page on its own line", async () => {
  await using service = new PlayedAdministration(...PAGES);
  const { code, stdout } = await service.ran("events list --all --json");
  assertEquals([code, stdout], [0, PAGES.map(({ body }) => `${body}\n`).join("")]);
});

Deno.test("weir audit --all: a page that leads back to itself ends it", async () => {
  await using service = new PlayedAdministration({ body: '{"items":[],"nextCursor":"same"}' });
  const { code, stderr } = await service.ran("audit --all");
  assertEquals([code, stderr], [1, 'Cannot run "audit": a page repeats\n']);
  assertEquals(service.got.length, 2);
});
