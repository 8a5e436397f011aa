import { assertEquals } from "@std/assert";
import { ADMINISTRATION_COMMANDS } from "../../../src/cli/administration_table.ts";
import {
  type Got,
  PlayedAdministration,
  type RunOptions,
  TOKEN,
} from "../../harness/administration_fixture.ts";
import { signedTriggerCalls } from "./signed_trigger_calls.ts";

const ID = "3b241101-e2bb-4255-8caf-4136c566a962";
const EMPTY_PAGE = '{"items":[]}';

interface Case {
  readonly args: readonly string[];
  /** Method and path. */
  readonly call: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly run?: RunOptions;
}

const CASES: readonly Case[] = [
  { args: ["endpoints", "list"], call: "GET /endpoints" },
  {
    args: ["endpoints", "list", "--limit", "7", "--cursor", "a b&c"],
    call: "GET /endpoints",
    query: { limit: "7", cursor: "a b&c" },
  },
  {
    args: ["endpoints", "add", "https://shop.example/hook"],
    call: "POST /endpoints",
    body: '{"url":"https://shop.example/hook"}',
  },
  {
    args: [
      ...[
        "endpoints",
        "add",
        "https://shop.example/hook",
        "--event",
        "workflow.*",
        "--event",
        "agent.reply.completed",
      ],
      ...[
        "--description",
        "the shop",
        "--header",
        "X-Api-Key: a: b ",
        "--header",
        "x-two:2",
        "--concurrency",
        "9",
      ],
      ...["--attempt-timeout", "1m30s", "--standard-webhooks", "--disabled"],
    ],
    call: "POST /endpoints",
    body: '{"url":"https://shop.example/hook","events":["workflow.*","agent.reply.completed"],' +
      '"description":"the shop","headers":{"X-Api-Key":"a: b","x-two":"2"},"concurrency":9,"timeoutMs":90000,' +
      '"standardWebhooks":true,"enabled":false}',
  },
  {
    args: ["endpoints", "add", "https://shop.example/", "--headers-file", "-"],
    run: { stdin: "X-Api-Key: secret\n\nX-Two: 2\r\n" },
    call: "POST /endpoints",
    body: '{"url":"https://shop.example/","headers":{"X-Api-Key":"secret","X-Two":"2"}}',
  },
  { args: ["endpoints", "show", ID], call: `GET /endpoints/${ID}` },
  { args: ["endpoints", "show", "../triggers/x?y#z"], call: "GET /endpoints/..%2Ftriggers%2Fx%3Fy%23z" },
  {
    args: ["endpoints", "edit", ID, "--to", "https://new.example/", "--enable"],
    call: `PATCH /endpoints/${ID}`,
    body: '{"url":"https://new.example/","enabled":true}',
  },
  {
    args: [
      ...[
        "endpoints",
        "edit",
        "--disable",
        "--no-headers",
        "--default-attempt-timeout",
        "--standard-webhooks=false",
      ],
      ID,
    ],
    call: `PATCH /endpoints/${ID}`,
    body: '{"standardWebhooks":false,"headers":null,"timeoutMs":null,"enabled":false}',
  },
  {
    args: [
      ...["endpoints", "add", "https://shop.example/", "--filter", "customer.plan=pro, team"],
      ...["--filter", 'note="a, \\"b\\"",100,1.10,007,true,null,"100","true"'],
    ],
    call: "POST /endpoints",
    body: '{"url":"https://shop.example/","filter":{"customer.plan":["pro","team"],' +
      '"note":["a, \\"b\\"",100,1.10,"007",true,null,"100","true"]}}',
  },
  {
    args: ["endpoints", "edit", ID, "--no-filter"],
    call: `PATCH /endpoints/${ID}`,
    body: '{"filter":null}',
  },
  {
    args: [
      "endpoints",
      "check",
      ID,
      "--event",
      "order.paid",
      "--data",
      '{"customer":{"id":12345678901234567890}}',
    ],
    call: `POST /endpoints/${ID}/check`,
    body: '{"event":"order.paid","data":{"customer":{"id":12345678901234567890}}}',
  },
  {
    args: ["events", "why", ID, "--endpoint", "e"],
    call: `GET /events/${ID}/why`,
    query: { endpointId: "e" },
  },
  { args: ["endpoints", "delete", ID], call: `DELETE /endpoints/${ID}` },
  { args: ["endpoints", "rotate", ID], call: `POST /endpoints/${ID}/rotate` },
  {
    args: ["endpoints", "rotate", ID, "--active-in", "0"],
    call: `POST /endpoints/${ID}/rotate`,
    body: '{"activeIn":"0"}',
  },
  { args: ["endpoints", "check", ID], call: `POST /endpoints/${ID}/check` },
  {
    args: ["endpoints", "recover", ID, "--since", "36h", "--dry-run"],
    call: `POST /endpoints/${ID}/recover`,
    body: '{"since":"2026-01-30T00:00:00.000Z","dryRun":true,"until":"2026-01-31T12:00:00.000Z"}',
  },
  {
    args: [
      "endpoints",
      "recover",
      ID,
      "--since",
      "2026-01-01T01:00:00+01:00",
      "--until",
      "2026-01-02T00:00:00Z",
    ],
    call: `POST /endpoints/${ID}/recover`,
    body: '{"since":"2026-01-01T00:00:00.000Z","until":"2026-01-02T00:00:00.000Z"}',
  },
  { args: ["triggers", "list"], call: "GET /triggers" },
  {
    args: ["triggers", "create", "order-intake", "--workflow", "order-intake"],
    call: "POST /triggers",
    body: '{"name":"order-intake","workflow":"order-intake"}',
  },
  {
    args: [
      ...[
        "triggers",
        "create",
        "t",
        "--workflow",
        "w",
        "--require-idempotency-key",
        "--on-body-mismatch",
        "reject",
      ],
      ...["--limit-domain", "edge", "--limit-descriptor", "customer={{ input.customer }},7=a=b"],
      ...["--limit-descriptor", "all=", "--on-limit-error", "allow", "--disabled"],
    ],
    call: "POST /triggers",
    body:
      '{"name":"t","workflow":"w","requireIdempotencyKey":true,"onBodyMismatch":"reject","limit":{"domain":"edge",' +
      '"descriptors":[{"customer":"{{ input.customer }}","7":"a=b"},{"all":""}]},"onLimitError":"allow",' +
      '"enabled":false}',
  },
  { args: ["triggers", "show", ID], call: `GET /triggers/${ID}` },
  {
    args: ["triggers", "edit", ID, "--no-limit", "--workflow", "w2"],
    call: `PATCH /triggers/${ID}`,
    body: '{"workflow":"w2","limit":null}',
  },
  { args: ["triggers", "delete", ID], call: `DELETE /triggers/${ID}` },
  { args: ["triggers", "rotate", ID], call: `POST /triggers/${ID}/rotate` },
  ...signedTriggerCalls(ID),
  { args: ["triggers", "revoke", ID, "key-1"], call: `DELETE /triggers/${ID}/keys/key-1` },
  { args: ["event-keys", "list"], call: "GET /event-keys" },
  {
    args: ["event-keys", "create", "agents", "--kind", "agent.*", "--kind", "*"],
    call: "POST /event-keys",
    body: '{"name":"agents","kinds":["agent.*","*"]}',
  },
  {
    args: ["triggers", "call", "order-intake"],
    call: "POST /triggers/order-intake/call",
    body: '{"data":{}}',
  },
  {
    args: ["triggers", "call", ID, "--data", '{"id": 12345678901234567890}', "--idempotency-key", "k 1"],
    call: `POST /triggers/${ID}/call`,
    headers: { "idempotency-key": "k 1" },
    body: '{"data":{"id":12345678901234567890}}',
  },
  {
    args: ["triggers", "call", "a", "--data-file", "-"],
    run: { stdin: '{"b": 1}' },
    call: "POST /triggers/a/call",
    body: '{"data":{"b":1}}',
  },
  {
    args: ["workflows", "list", "--limit", "2", "--cursor", "c"],
    call: "GET /workflows",
    query: { limit: "2", cursor: "c" },
  },
  { args: ["workflows", "show", "my file.yaml"], call: "GET /workflows/my%20file.yaml" },
  {
    args: [
      "counters",
      "peek",
      "--domain",
      "shop",
      "--descriptors",
      "account=a b",
      "--descriptors",
      "k=,l=m=n",
    ],
    call: "POST /counters/peek",
    body: '{"domain":"shop","descriptors":[{"entries":[{"key":"account","value":"a b"}]},' +
      '{"entries":[{"key":"k","value":""},{"key":"l","value":"m=n"}]}]}',
  },
  {
    args: ["counters", "reset", "--domain", "shop", "--descriptors", "account=bob"],
    call: "POST /counters/reset",
    body: '{"domain":"shop","descriptors":[{"entries":[{"key":"account","value":"bob"}]}]}',
  },
  { args: ["event-keys", "delete", ID], call: `DELETE /event-keys/${ID}` },
  { args: ["events", "post", "a.b"], call: "POST /events", body: '{"event":"a.b","data":{}}' },
  {
    args: [
      "events",
      "post",
      "a.b",
      "--data",
      '{"n": 12345678901234567890, "x": 1.10}',
      "--idempotency-key",
      "k 1",
    ],
    call: "POST /events",
    headers: { "idempotency-key": "k 1" },
    body: '{"event":"a.b","data":{"n":12345678901234567890,"x":1.10}}',
  },
  {
    args: ["events", "post", "a.b", "--data-file", "-"],
    run: { stdin: ' {"__proto__": 1e400}\n' },
    call: "POST /events",
    body: '{"event":"a.b","data":{"__proto__":1e400}}',
  },
  {
    args: ["events", "list", "--event", "a.b", "--since", "1h", "--until", "2026-01-31T11:30:00Z"],
    call: "GET /events",
    query: { event: "a.b", since: "2026-01-31T11:00:00.000Z", until: "2026-01-31T11:30:00.000Z" },
  },
  { args: ["events", "show", ID], call: `GET /events/${ID}` },
  { args: ["events", "erase", ID], call: `DELETE /events/${ID}/payload` },
  {
    args: ["deliveries", "list", "--endpoint", ID, "--state", "failed", "--event", "a.b", "--event-id", ID],
    call: "GET /deliveries",
    query: { endpointId: ID, state: "failed", event: "a.b", eventId: ID },
  },
  ...["deliveries", "executions"].map((of) => ({ args: [of, "show", ID], call: `GET /${of}/${ID}` })),
  { args: ["deliveries", "resend", ID], call: `POST /deliveries/${ID}/resend` },
  { args: ["deliveries", "why", ID], call: `GET /deliveries/${ID}` },
  ...["pause", "resume"].map((verb) => ({ args: ["deliveries", verb], call: `POST /deliveries/${verb}` })),
  { args: ["executions", "list", "--state", "queued"], call: "GET /executions", query: { state: "queued" } },
  { args: ["executions", "cancel", ID], call: `POST /executions/${ID}/cancel` },
  { args: ["audit", "--action", "delivery.failed"], call: "GET /audit", query: { event: "delivery.failed" } },
];

for (const { args, call, query = {}, body = "", headers = {}, run = {} } of CASES) {
  Deno.test(`weir ${args.join(" ")}: is one call of the administration`, async () => {
    await using service = new PlayedAdministration({ body: EMPTY_PAGE });
    const { code, stderr } = await service.ran(args, run);
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    assertEquals(service.got.map(shown), [{
      call: call.replace(" /", " /api/v1/"),
      query,
      body,
      headers: {
        ...headers,
        ...(body === "" ? {} : { "content-type": "application/json" }),
        accept: "application/json",
        authorization: `Bearer ${TOKEN}`,
      },
    }]);
  });
}

Deno.test("the calls above are those of every command", () => {
  const called = CASES.map(({ args }) => args[0] === "audit" ? "audit" : args.slice(0, 2).join(" "));
  assertEquals([...new Set(called)].sort(), ADMINISTRATION_COMMANDS.map(({ words }) => words).sort());
});

/** What our client adds by itself is of no interest. */
function shown({ method, path, query, body, headers }: Got) {
  const ours = ["idempotency-key", "content-type", "accept", "authorization"];
  return {
    call: `${method} ${path}`,
    query,
    body,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => ours.includes(name))),
  };
}

const WRONG: readonly (readonly [args: readonly string[], line: string])[] = [
  [["endpoints", "add"], 'Cannot run "endpoints add": URL is missing'],
  [["endpoints", "add", ""], 'Cannot run "endpoints add": URL is missing'],
  [
    ["endpoints", "list", "x"],
    'Cannot run "endpoints list": expected "weir endpoints list [flags]"',
  ],
  [["endpoints", "edit", ID], 'Cannot run "endpoints edit": nothing to change'],
  [["endpoints", "show", ".."], 'Invalid ID "..": expected an identifier'],
  [["endpoints", "recover", ID], 'Cannot run "endpoints recover": --since is missing'],
  [
    ["endpoints", "recover", ID, "--since", "yesterday"],
    'Invalid --since "yesterday": expected a time such as 2026-01-31T12:00:00Z, or how long ago it was, such as 24h',
  ],
  [
    ["endpoints", "add", "u", "--concurrency", "-1"],
    'Invalid --concurrency "-1": expected an integer',
  ],
  [
    ["endpoints", "add", "u", "--attempt-timeout", "5"],
    'Invalid --attempt-timeout "5": expected a duration such as 500ms or 10s',
  ],
  [["endpoints", "add", "u", "--header", "secret"], 'Invalid --header: expected "Name: value"'],
  [
    ["endpoints", "add", "u", "--header", "a: secret", "--header", "A: b"],
    "Invalid --header: expected each header once",
  ],
  [
    ["endpoints", "edit", ID, "--header", "a: secret", "--no-headers"],
    "Cannot use --no-headers with --header",
  ],
  [
    ["endpoints", "edit", ID, "--enable", "--disable"],
    "Cannot use --disable with --enable",
  ],
  ...["plan", "=pro", "plan=", "plan=pro,", 'plan="pro', 'plan="a"b', 'plan=a"b'].map((text) =>
    [
      ["endpoints", "add", "u", "--filter", text],
      `Invalid --filter "${text}": expected path=value[,value...]`,
    ] as const
  ),
  [
    ["endpoints", "add", "u", "--filter", "a=1", "--filter", "a=2"],
    'Invalid --filter "a=1 a=2": expected each path once',
  ],
  [["endpoints", "edit", ID, "--filter", "a=1", "--no-filter"], "Cannot use --no-filter with --filter"],
  [["events", "why", ID], 'Cannot run "events why": --endpoint is missing'],
  [["triggers", "create", "t"], 'Cannot run "triggers create": --workflow is missing'],
  [
    ["triggers", "edit", ID, "--no-limit", "--limit-domain", "edge"],
    "Cannot use --no-limit with --limit-domain",
  ],
  [
    ["triggers", "edit", ID, "--limit-descriptor", "customer"],
    'Invalid --limit-descriptor "customer": expected key=value[,key=value...]',
  ],
  [
    ["triggers", "edit", ID, "--tolerance", "1500ms"],
    'Invalid --tolerance "1500ms": expected a duration in whole seconds such as 90s or 5m',
  ],
  [["event-keys", "create", "agents"], 'Cannot run "event-keys create": --kind is missing'],
  [["events", "post", "a.b", "--data", '{"secret'], "Invalid --data: expected JSON"],
  [
    ["events", "post", "a.b", "--data", "{}", "--data-file", "-"],
    "Cannot use --data-file with --data",
  ],
  [["counters", "peek", "--domain", "shop"], 'Cannot run "counters peek": --descriptors is missing'],
  [["counters", "reset", "--descriptors", "a=b"], 'Cannot run "counters reset": --domain is missing'],
  [
    ["counters", "reset", "--domain", "shop", "--descriptors", "account"],
    'Invalid --descriptors "account": "account" has no equals sign: expected key=value',
  ],
  [["triggers", "call"], 'Cannot run "triggers call": NAME is missing'],
  [["triggers", "call", "a", "--data", '{"secret'], "Invalid --data: expected JSON"],
  [["workflows", "show", ".."], 'Invalid NAME "..": expected an identifier'],
  [["workflows", "list", "--since", "1h"], "Unknown flag --since"],
  [["audit", "--acton", "x"], "Unknown flag --acton; did you mean --action?"],
];

for (const [args, line] of WRONG) {
  Deno.test(`weir ${args.join(" ")}: is wrong usage and calls nobody`, async () => {
    await using service = new PlayedAdministration({ body: EMPTY_PAGE });
    const { code, stdout, stderr } = await service.ran(args, { stdin: "{}" });
    assertEquals([code, stdout, stderr.split("\n")[0], service.got], [2, "", line, []]);
    assertEquals(stderr.split("\n")[2]?.startsWith("usage: weir "), true);
  });
}
