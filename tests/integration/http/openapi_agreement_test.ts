/** A request that its schema allows is accepted, and one that it does not allow is refused: field by field. */
import { assertEquals } from "#assert";
import type { Schema } from "../../harness/openapi_schema.ts";
import { OpenApiService, type PlacedOperation, placedOperations } from "../../harness/openapi_service.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { takenCall } from "../../harness/webhook_client.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Texts of all kinds, good and bad, for any field. */
const TEXTS = [
  ...[
    "",
    " ",
    "a",
    "A",
    "0",
    "a b",
    " a",
    "a ",
    "a\tb",
    "a\nb",
    "a\0",
    "\u0001",
    "\u007f",
    "\u0085",
    "é",
    "😀",
  ],
  ...["*", "a.*", "*.a", "a.", ".a", "a..b", "a.b", "A.b", "a-b", "-a", "a_1.b", "agent.*", "**", "a.*.b"],
  ...[64, 65, 128, 129, 130, 253, 1_024, 1_025].map((length) => "a".repeat(length)),
  ...[`${"a".repeat(128)}.*`, '"'.repeat(127), '"'.repeat(200)],
  ...["00", "08", "1", "-1", "+1", "1.5", "4294967295", "4294967296", "9007199254740992", "9007199254740993"],
  ...["0s", "30m", "24h", "1h30m", "29d23h", "30d", "31d", "720h", "721h", "43200m", "43201m", "2592001s"],
  ...["5ms", "1.5s", "1x", "h", "1h ", "-1h", "999999d", "2026-01-01T00:00:00Z", "2026-01-01", "yesterday"],
  ...[
    "{{ input.a }}",
    "{{ input }}",
    "x{{input.a[0].b}}y",
    "{{",
    "}}",
    "{{}}",
    "{{ env.A }}",
    "{{ input. }}",
  ],
  ...[
    "{{{ input.a }}",
    "whsec_AAAA",
    "whsec_c2VjcmV0c2VjcmV0c2VjcmV0",
    "whsec_?",
    "a secret of words",
    "short",
  ],
  ...["        ", "content-length", "Content-Length", "HOST", "x-signature", "X-Svc-Id", "webhook-id", "x_y"],
  ...[
    "authorization",
    "https://127.0.0.1:9/hooks",
    "ftp://a/",
    "no url",
    "github",
    "hmac-sha256",
    "DAY",
    "day",
  ],
  ...["UNKNOWN", "2cbaae4d-d015-44da-860c-dad302d554aa", "2cbaae4d", "endpoints.1", "endpoints.0"],
  ...[
    "deliveries.12",
    "audit.9999999999999999",
    "workflows.6563686f",
    "workflows.6",
    "Y3Vyc29yOjE",
    "queued",
  ],
  "delivered",
];
const SIGNED = { scheme: "hmac-sha256", header: "x-a", toleranceSeconds: 5 };
const CUSTOM = { scheme: "custom", signed: "{body}", signature: { header: "x-a" } };
const OAUTH2 = { type: "oauth2", tokenUrl: "https://127.0.0.1:9/token", clientId: "a", clientSecret: "b" };
const VALUES: readonly unknown[] = [
  ...[{ scheme: "gitlab" }, { scheme: "slack", toleranceSeconds: 5 }, {
    scheme: "gitlab",
    toleranceSeconds: 5,
  }],
  ...[{ scheme: "grafana", timestampHeader: "x-t", toleranceSeconds: 5 }, {
    scheme: "grafana",
    toleranceSeconds: 5,
  }],
  ...[{ scheme: "token" }, { scheme: "token", header: "x-a", prefix: "a" }, {
    scheme: "token",
    header: "x-a",
    encoding: "hex",
  }],
  ...[{ scheme: "square" }, { scheme: "basic", secret: "user:password" }, { scheme: "discord" }, {
    scheme: "clerk",
    secret: "12345678",
  }],
  ...[CUSTOM, { ...CUSTOM, signed: "{body" }, { ...CUSTOM, signed: "{time}{body}" }, { scheme: "custom" }],
  ...[{ ...CUSTOM, signature: {} }, { ...CUSTOM, signature: { header: "x-a, Host" } }, { header: "a,b, c" }],
  ...[{ ...CUSTOM, time: { field: "a.b", unit: "seconds" } }, { ...CUSTOM, time: {} }, {
    field: "a",
    header: "b",
  }],
  ...[{ ...CUSTOM, id: { field: "a" }, toleranceSeconds: 5 }, { ...CUSTOM, header: "x-a" }, {
    header: "x-a",
    list: ",",
  }],
  ...[{ type: "basic", user: "a", password: "b" }, { type: "basic", user: "a:b", password: "b" }],
  ...[{ type: "basic", user: "a" }, { type: "basic", user: "a", password: "b", token: "c" }, {
    type: "digest",
  }],
  ...[{ type: "bearer", token: "a" }, { type: "bearer", token: "a b" }, { type: "bearer" }],
  ...[OAUTH2, { ...OAUTH2, scope: "a b" }, { ...OAUTH2, scope: " a" }, { ...OAUTH2, credentialsIn: "query" }],
  ...[{ ...OAUTH2, audience: "" }, { ...OAUTH2, user: "a" }, { type: "oauth2", clientId: "a" }],
  ...[{ certificate: "a" }, { key: "a" }, { ca: "a" }, { ca: 1 }],
  ...TEXTS,
  ...[null, true, false, 0, 1, -1, 1.5, 100, 101, 86_400, 86_401, 600_000, 600_001, 2 ** 32 - 1, 2 ** 32],
  ...[[], [""], ["a"], ["a", "*"], [1], [null], [["a"]], Array(100).fill("a"), Array(101).fill("a")],
  ...[{}, { a: "b" }, { "": "b" }, { a: 1 }, { "a b": "c" }, { "x-a": "é" }, { "x-a": "" }, { Host: "a" }],
  ...[{ a: ["b"] }, { "": ["b"] }, { "a.b": [1, null, true, "x"] }, { "a..b": ["c"] }, { a: [] }],
  ...[{ a: [{}] }, { "a\n": ["b"] }, { a: ["b\n"] }, { a: ['"'.repeat(127)] }, { a: ['"'.repeat(128)] }],
  ...[{ scheme: "github" }, { scheme: "github", header: "x-a" }, { scheme: "stripe", toleranceSeconds: 5 }],
  ...[{ scheme: "shopify", toleranceSeconds: 5 }, { scheme: "hmac-sha256" }, { scheme: "unknown" }],
  ...[{ scheme: "hmac-sha256", header: "x-a" }, SIGNED, { ...SIGNED, timestampHeader: "x-t", prefix: "v=" }],
  ...[{ scheme: "hmac-sha256", header: "Content-Length" }, { scheme: "standard-webhooks", prefix: "a" }],
  ...["12345678", "1234567"].map((secret) => ({ scheme: "github", secret })),
  ...["whsec_AAAA", "12345678", "whsec_c2VjcmV0c2VjcmV0"].map((secret) => ({
    scheme: "standard-webhooks",
    secret,
  })),
  ...["d", "", "d\n"].map((domain) => ({ domain, descriptors: [{ k: "v" }] })),
  ...[[], [{}], [{ "": "v" }], [{ k: "{{ input.a }}" }], [{ k: "{{ x }}" }], [{ k: 1 }]].map((
    descriptors,
  ) => ({
    domain: "d",
    descriptors,
  })),
];
/** Refusals by the state of a record or by another field, which no schema of a field can describe. */
const BY_STATE = [
  "a path begins with 'data'",
  "{time} requires",
  "{id} requires",
  "{url} requires",
  "expected {time}",
  "it is the header of the signature",
  "it requires verify.signature.list",
  "public key",
  "user:password",
  "signs the URL",
  "requires verify",
  "it is required with the challenge meta",
  "only the challenge meta",
  "expected base64",
  "expected a time after since",
  "it cannot be changed, and is github",
  "with this name",
  "such as `workflow.`",
  "reports itself",
];

Deno.test("openapi: a body is accepted if and only if its schema allows it, and refused by the name of its field", async () => {
  await using service = await OpenApiService.start();
  const differences: string[] = [];
  for (const placed of placedOperations(service.document)) {
    const { schema, example } = placed.operation.requestBody?.content["application/json"] ?? {};
    if (schema === undefined || placed.operation.operationId === "callTrigger") continue;
    assertEquals(service.schemas.resolved(schema)["additionalProperties"], false);
    const path = await pathOf(service, placed);
    const isAllowed = service.schemas.validator(schema);
    await forEach(
      bodies(service, schema, local(example as Fields, placed.path), placed.path),
      async ([name, body]) => {
        const refusal = await refusalOf(service, placed, { path, body });
        differences.push(
          ...differencesOf(refusal, isAllowed(body), name, `${placed.path} ${shortened(body)}`),
        );
      },
    );
  }
  assertEquals(differences, []);
});

Deno.test("openapi: an integer may be written with a fraction of zeros", async () => {
  await using service = await OpenApiService.start();
  const body = '{"url":"https://127.0.0.1:9/","concurrency":13.0,"timeoutMs":1.5e3}';
  const created = await service.call("createEndpoint", { status: 201, body });
  assertEquals([created.body["concurrency"], created.body["timeoutMs"]], [13, 1_500]);
});

Deno.test("openapi: a parameter is accepted if and only if its schema allows it", async () => {
  await using service = await OpenApiService.start();
  const differences: string[] = [];
  for (const placed of placedOperations(service.document)) {
    if (!placed.path.startsWith("/api/")) continue;
    const path = await pathOf(service, placed);
    for (const { name, in: place, schema } of placed.operation.parameters ?? []) {
      if (place !== "query") continue;
      const isAllowed = service.schemas.validator(schema);
      const edges = edgesOf(schema).filter((one) => typeof one === "string" || typeof one === "number");
      await forEach([...TEXTS, ...edges.map(String)], async (text) => {
        const isNumber = schema["type"] === "integer" && /^(?:0|[1-9][0-9]*)$/.test(text);
        const query = new URLSearchParams([[name, text]]);
        const refusal = await refusalOf(service, placed, { path: `${path}?${query}` });
        const what = `${placed.path} ${name}=${shortened(text)}`;
        differences.push(...differencesOf(refusal, isAllowed(isNumber ? Number(text) : text), name, what));
      });
    }
  }
  assertEquals(differences, []);
});

/** The differences of a refusal, or of its absence, from the schema. */
function differencesOf(
  refusal: Refusal | undefined,
  isAllowed: boolean,
  name: string,
  what: string,
): string[] {
  if (isAllowed !== (refusal === undefined)) return [`${what}: ${isAllowed} ${refusal?.detail}`];
  if (refusal === undefined || refusal.field.split(/[.[]/)[0] === name) return [];
  return [`${what}: refused for ${refusal.field}`];
}

const CONCURRENCY = 16;

/** Some at a time, as a commit of the store serves all of them. */
async function forEach<T>(items: Iterable<T>, check: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  await Promise.all(Array.from({ length: CONCURRENCY }, async () => {
    for (let next = queue.next(); !next.done; next = queue.next()) await check(next.value);
  }));
}

/** Without a name that would be resolved, and without replays, of which a few may run. */
function local(example: Fields, path: string): Fields {
  if (/\/(?:replay|retry)$/.test(path)) return { ...example, dryRun: true };
  return "url" in example ? { ...example, url: "https://127.0.0.1:9/" } : example;
}

/** The example with one field replaced by each value, also in objects that it has, without it, or with one too many. */
function* bodies(
  service: OpenApiService,
  schema: Schema,
  example: Fields,
  path: string,
): Generator<readonly [name: string, body: unknown]> {
  const { properties = {}, required = [] } = service.schemas.resolved(schema);
  yield ["unknownField", { ...example, unknownField: 1 }];
  for (const name of required as readonly string[]) {
    const { [name]: _, ...rest } = example;
    yield [name, rest];
  }
  // The texts of a decision are anyone's.
  const valuesOf = (one: Schema) => path === "/json" ? [] : valuesFor(service, one);
  for (const [name, one] of Object.entries(properties)) {
    const [first] = Array.isArray(example[name]) ? example[name] : [];
    const { items } = service.schemas.resolved(one);
    const edges = edgesOf(service.schemas.resolved(one), first);
    for (const value of [...valuesOf(one), ...edges]) yield [name, { ...example, [name]: value }];
    if (items === undefined) continue;
    for (const value of valuesOf(items)) yield [name, { ...example, [name]: [value] }];
    if (typeof first !== "object" || first === null) continue;
    for (const [, body] of bodies(service, items, first, path)) yield [name, { ...example, [name]: [body] }];
  }
}

/** Every text for a field that may be a text, some for any other. */
function valuesFor(service: OpenApiService, schema: Schema): readonly unknown[] {
  const { type, anyOf = [] } = service.schemas.resolved(schema);
  const isText = [type, ...anyOf.map((one) => one["type"])].some((one) => String(one).includes("string"));
  return VALUES.filter((value, index) =>
    isText ? typeof value !== "object" || index % 4 === 0 : typeof value !== "string" || index % 16 === 0
  );
}

/** Values at the bounds of a schema and beyond them; too long a list repeats an item. */
function edgesOf(
  { type, minimum, maximum, maxLength, maxItems, enum: choices = [] }: Schema,
  item: unknown = "a",
) {
  const bounds = [minimum, maximum].filter((one) => typeof one === "number");
  return [
    ...bounds.flatMap((bound) => [bound - 1, bound, bound + 1]),
    ...(typeof maxLength === "number" ? ["a".repeat(maxLength + 1)] : []),
    ...(typeof maxItems === "number" ? [[], Array(maxItems + 1).fill(item)] : []),
    ...(choices as readonly unknown[]),
    ...["no such value!", { unexpected: true }, String(type).includes("boolean") ? "yes" : 1.5],
  ];
}

interface Refusal {
  readonly field: string;
  readonly detail: string;
}

/** The reason why a request is refused; undefined if it is accepted, or would be in another state. */
async function refusalOf(
  service: OpenApiService,
  { method }: PlacedOperation,
  { path, body }: { readonly path: string; readonly body?: unknown },
): Promise<Refusal | undefined> {
  const { status, body: answer } = await takenCall(`http://${service.http}${path}`, {
    method,
    token: ADMIN_TOKEN,
    body,
  });
  const text = JSON.stringify(answer);
  if (status >= 500) return { field: "", detail: `${status} ${text}` };
  const isRefused = status === (path === "/json" ? 400 : 422);
  if (!isRefused || BY_STATE.some((state) => text.includes(state))) return undefined;
  return { field: String(answer["field"] ?? ""), detail: String(answer["detail"]) };
}

/** A path whose record exists where an endpoint or a trigger is addressed. */
async function pathOf(service: OpenApiService, { path }: PlacedOperation): Promise<string> {
  if (!path.includes("{")) return path;
  const body = path.includes("/triggers/")
    ? { name: `t-${crypto.randomUUID()}`, workflow: "echo", verify: { scheme: "github" } }
    : { url: "https://127.0.0.1:9/" };
  const operation = path.includes("/triggers/") ? "createTrigger" : "createEndpoint";
  const { id } = (await service.call(operation, { status: 201, body })).body;
  return path.replaceAll(/\{\w+\}/g, id);
}

function shortened(value: unknown): string {
  return JSON.stringify(value).slice(0, 160);
}
