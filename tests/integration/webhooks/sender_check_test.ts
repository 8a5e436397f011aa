import type { ComparedEvent } from "../../../src/webhooks/model/event_filter.ts";
import { assertEquals, assertMatch } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import {
  type CheckedStage,
  createEndpointCheck,
  type EndpointCheckOptions,
} from "../../../src/webhooks/deliveries/endpoint_check.ts";
import type { Endpoint, Sealed } from "../../../src/webhooks/model/records.ts";
import { verify } from "../../../src/webhooks/receiver.ts";
import { createSender } from "../../../src/webhooks/deliveries/sender.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { freePort } from "../../harness/free_port.ts";
import { needing } from "../../harness/tools.ts";
import { tlsReceiver } from "./guarded_fetch_fixture.ts";
import { EchoServer } from "../../harness/rest_fixture.ts";
import { LOOPBACK, SECRET } from "../../harness/sender_fixture.ts";

const SIGNING = `whsec_${btoa("signing secret of thirty-two by.")}`;

function sealed(text: string): Sealed {
  return { keyId: "plain", bytes: new TextEncoder().encode(text) };
}

function endpoint(url: string): Endpoint {
  const now = Date.now();
  return {
    id: "e",
    url,
    events: ["*"],
    description: SECRET,
    enabled: true,
    createdAt: now,
    updatedAt: now,
    headerNames: ["x-own"],
    headers: sealed('{"x-own":"1"}'),
    concurrency: 4,
    standardWebhooks: false,
    secrets: [{ id: "s", sealed: sealed(SIGNING), createdAt: now, activeAt: now }],
  };
}

async function check(
  url: string,
  own: Partial<EndpointCheckOptions> = {},
  { filter, ...event }: ComparedEvent & { readonly filter?: string } = {},
): Promise<readonly CheckedStage[]> {
  const options = { allow: LOOPBACK, connectTimeoutMs: 1_000, clock: new FakeClock(Date.now()), ...own };
  const sender = createSender({ ...options, userAgent: "Weir/test" });
  const run = createEndpointCheck({
    ...options,
    sender,
    tokens: { get: () => Promise.reject(new Error("no endpoint of this test has an access token")) },
    version: "test",
    timeoutMs: 2_000,
    newId: () => crypto.randomUUID(),
    secretBox: { unseal: ({ bytes }) => Promise.resolve(new TextDecoder().decode(bytes)) },
  });
  try {
    return await run({ ...endpoint(url), filter }, event);
  } finally {
    await sender.close();
  }
}

/** Each stage as one text; times and ports of this run are left out. */
function lines(stages: readonly CheckedStage[]): readonly string[] {
  return stages.map(({ stage, ok, detail }) =>
    `${stage} ${ok ? "ok" : "not ok"}: ${
      detail.replace(/after \d+ ms/, "after some ms").replace(/:?\b\d{4,5}$/, " N")
    }`
  );
}

const FILTER = '{"plan":["pro"]}';
const SKIPPED = ["url", "resolve", "address", "connect", "tls", "sample"].map((stage) =>
  `${stage} not ok: skipped: filter failed`
);

/** The event of the call, the filter of the endpoint, and the first stage; the rest is skipped where it fails. */
const COMPARED: readonly (readonly [title: string, event: Parameters<typeof check>[2], stage: string])[] = [
  ["a filter and no event", { filter: FILTER }, "filter ok: not compared: the call has no data"],
  [
    "a payload that matches",
    { filter: FILTER, data: { plan: "pro" } },
    "filter ok: the endpoint receives this event",
  ],
  ["a kind without a filter", { kind: "a.b" }, "filter ok: the endpoint receives this event"],
  [
    "a kind that * does not include",
    { kind: "endpoint.disabled" },
    "filter not ok: the endpoint does not subscribe to endpoint.disabled",
  ],
  [
    "a payload that does not match",
    { filter: FILTER, data: { plan: "free" } },
    'filter not ok: plan is "free"; the filter expects "pro"',
  ],
];

for (const [title, event, stage] of COMPARED) {
  Deno.test(`a dry run with ${title} compares it first, and sends nothing of it`, async () => {
    await using server = new EchoServer(() => new Response("thanks"));
    const [first, ...rest] = lines(await check(`${server.origin}/hook`, {}, event));
    assertEquals(first, stage);
    if (stage.startsWith("filter not ok")) assertEquals(rest, SKIPPED);
    else assertEquals(rest.at(-1), "sample ok: the receiver responded with 200 after some ms");
    const bodies = server.requests.map(({ body }) => new TextDecoder().decode(body));
    assertEquals(bodies.every((body) => body === '{"event":"weir.endpoint.check","data":{}}'), true);
  });
}

Deno.test("a dry run goes through every stage and sends a signed sample without real data", async () => {
  await using server = new EchoServer(() => new Response("thanks"));
  assertEquals(lines(await check(`${server.origin}/hook?token=${SECRET}`)), [
    "url ok: http://127.0.0.1 N",
    "resolve ok: 127.0.0.1",
    "address ok: 127.0.0.1",
    "connect ok: to 127.0.0.1 port  N",
    "tls ok: none: the URL is http",
    "sample ok: the receiver responded with 200 after some ms",
  ]);
  const [seen] = server.requests;
  const { body = new Uint8Array(), headers = {} } = seen ?? {};
  assertEquals(new TextDecoder().decode(body), '{"event":"weir.endpoint.check","data":{}}');
  assertEquals([seen?.headers["x-svc-event"], seen?.headers["x-own"]], ["weir.endpoint.check", "1"]);
  const result = await verify({ body, headers: new Headers(headers), secrets: [SIGNING] });
  assertEquals(result.ok, true);
});

needing("openssl").test("a dry run shows who has the certificate, and who issued it", async () => {
  await using certificates = await makeCertificates();
  const { server: pair, authority } = certificates;
  await using server = await tlsReceiver(pair, (response) => response.writeHead(204).end());
  const url = `https://127.0.0.1:${server.port}/`;
  const [, , , , tls, sample] = await check(url, {
    authorities: [await Deno.readTextFile(authority.certFile)],
  });
  assertEquals([tls?.ok, sample?.ok], [true, true]);
  assertMatch(
    tls?.detail ?? "",
    /^subject CN=server, issuer CN=authority, valid to 20\d\d-[-\d]+T[\d:.]+Z, TLSv1\.3$/,
  );
  assertEquals(lines(await check(url)).slice(4), [
    "tls not ok: the certificate is not issued by a trusted authority (UNABLE_TO_VERIFY_LEAF_SIGNATURE)",
    "sample not ok: skipped: tls failed",
  ]);
  const late = await check(url, { clock: new FakeClock(Date.now() + 31 * 86_400_000) });
  assertMatch(
    late[4]?.detail ?? "",
    /^the certificate expired on 20\d\d-[-\d]+T[\d:.]+Z \(CERT_HAS_EXPIRED\)$/,
  );
});

Deno.test("a dry run ends at the stage that fails", async () => {
  const skipped = (names: readonly string[], after: string) =>
    names.map((name) => `${name} not ok: skipped: ${after} failed`);
  const port = freePort();
  await using refusing = new EchoServer(() => new Response(null, { status: 401 }));
  const lookup = () => Promise.resolve(["127.0.0.1"]);
  const table: readonly (readonly [string, Partial<EndpointCheckOptions>, number, readonly string[]])[] = [
    [`https://user:${SECRET}@a.test/`, {}, 0, [
      "url not ok: expected a URL without user name and password",
      ...skipped(["resolve", "address", "connect", "tls", "sample"], "url"),
    ]],
    ["https://a.invalid/", { lookup: () => Promise.reject(new Error(SECRET)) }, 1, [
      "resolve not ok: the name of the host cannot be resolved",
      ...skipped(["address", "connect", "tls", "sample"], "resolve"),
    ]],
    ["https://a.test/", { lookup: () => Promise.resolve(["10.0.0.1"]) }, 2, [
      "address not ok: the address 10.0.0.1 is private (10.0.0.0/8)",
      ...skipped(["connect", "tls", "sample"], "address"),
    ]],
    [`https://a.test:${port}/`, { lookup }, 3, [
      `connect not ok: connection refused (127.0.0.1:${port})`,
      ...skipped(["tls", "sample"], "connect"),
    ]],
    [`${refusing.origin}/`, { lookup }, 5, ["sample not ok: the receiver responded with 401"]],
  ];
  for (const [url, options, from, expected] of table) {
    const stages = await check(url, options);
    assertEquals([lines(stages).slice(from), stages.slice(0, from).every(({ ok }) => ok)], [expected, true]);
    assertEquals(JSON.stringify(stages).includes(SECRET), false);
  }
});

/** The lead of the receiver's clock, its status, and the stage. */
const CLOCKS: readonly (readonly [aheadMs: number, status: number, sample: string])[] = [
  [0, 401, "401"],
  [4 * 60_000, 401, "401"],
  [6 * 60_000, 200, "200 after some ms; its clock is 6 min ahead of this machine"],
  [2 * 3_600_000, 401, "401; its clock is 2 h ahead of this machine"],
  [-3 * 86_400_000, 302, "302, and redirects are not followed; its clock is 3 d behind this machine"],
];

for (const [aheadMs, status, sample] of CLOCKS) {
  Deno.test(`a dry run compares the clock of a receiver that is ${aheadMs / 60_000} min ahead and returns ${status}`, async () => {
    const now = Date.now();
    const headers = { date: new Date(now + aheadMs).toUTCString() };
    await using server = new EchoServer(() => new Response(null, { status, headers }));
    const stages = await check(server.origin, { clock: new FakeClock(now) });
    assertEquals(
      lines(stages).at(-1),
      `sample ${status === 200 ? "ok" : "not ok"}: the receiver responded with ${sample}`,
    );
  });
}

Deno.test("a dry run ignores a date of the receiver that is invalid", async () => {
  await using server = new EchoServer(() => new Response(null, { headers: { date: "yesterday" } }));
  assertEquals(
    lines(await check(server.origin)).at(-1),
    "sample ok: the receiver responded with 200 after some ms",
  );
});

Deno.test("a dry run through a proxy leaves addresses to it", async () => {
  await using proxy = new EchoServer(() => new Response("thanks"));
  const stages = await check("http://10.0.0.1/hook", {
    proxy: new URL(`http://user:${SECRET}@127.0.0.1:${proxy.port}`),
  });
  assertEquals(lines(stages), [
    "url ok: http://10.0.0.1",
    "resolve ok: left to the proxy",
    "address ok: left to the proxy",
    "connect ok: through the proxy",
    "tls ok: none: the URL is http",
    "sample ok: the receiver responded with 200 after some ms",
  ]);
});

Deno.test("check: a receiver that serves one connection at a time", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    const response = new TextEncoder().encode("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
    for await (const connection of listener) {
      // The next connection waits until this one has sent a request or ended.
      if (await connection.read(new Uint8Array(65_536)) !== null) await connection.write(response);
      connection.close();
    }
  })();
  try {
    const url = `http://127.0.0.1:${listener.addr.port}/`;
    const sample = lines(await check(url, { clock: systemClock })).at(-1);
    assertEquals(sample, "sample ok: the receiver responded with 204 after some ms");
  } finally {
    listener.close();
    await serving;
  }
});
