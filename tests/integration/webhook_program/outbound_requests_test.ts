/** The headers of every outbound request, and requests and responses of request steps, by the front door. */
import { assertEquals, assertMatch } from "#assert";
import { gzipSync } from "node:zlib";
import { EchoServer } from "../../harness/rest_fixture.ts";
import { until } from "../../harness/until.ts";
import type { AnswerBody } from "../../harness/webhook_client.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const DEFAULTS = { accept: "*/*", "accept-encoding": "gzip, deflate, br" };

/** An API that refuses requests without a user agent, as GitHub's does, and has bodies of every kind. */
function apiOf(request: { readonly path: string; readonly headers: Record<string, string> }): Response {
  if (!request.headers["user-agent"]) return new Response("no agent", { status: 403 });
  switch (request.path) {
    case "/gzip":
      return new Response(gzipSync('{"city":"Köln"}'), {
        headers: { "content-type": "application/json", "content-encoding": "gzip" },
      });
    case "/latin-1":
      return new Response(new Uint8Array([0x4b, 0xf6, 0x6c, 0x6e]), {
        headers: { "content-type": "text/plain; charset=iso-8859-1" },
      });
    default:
      return new Response("ok");
  }
}

/** The names and values of these headers of a request. */
function sentOf(headers: Readonly<Record<string, string>> = {}): Record<string, string | undefined> {
  const { accept, "accept-encoding": coding, "user-agent": agent } = headers;
  return {
    accept,
    "accept-encoding": coding,
    "user-agent": agent?.replace(/\/\d+\.\d+\.\d+\S*$/, "/VERSION"),
  };
}

Deno.test("outbound requests: steps, deliveries and test calls send the same defaults", async () => {
  await using server = new EchoServer((request) => apiOf(request));
  const workflow = `workflow: calls
steps:
  - name: plain
    request: { url: "${server.origin}/plain" }
  - name: own
    request: { url: "${server.origin}/own", headers: { User-Agent: mine/1, ACCEPT: text/csv, accept-encoding: identity } }
  - name: gzip
    request: { url: "${server.origin}/gzip" }
  - name: latin
    request: { url: "${server.origin}/latin-1" }
  - name: result
    set: { city: "{{ steps.gzip.body.city }}", text: "{{ steps.latin.body }}" }
`;
  await using folder = await WebhookFolder.make({ "calls.yaml": workflow });
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const { body: endpoint } = await api(http, "/endpoints", { body: { url: `${server.origin}/hook` } });
  await api(http, `/endpoints/${endpoint.id}/check`, { method: "POST" });
  await until("the test call", () => server.requests.length === 1);
  const execution = await executed(http, "calls", {});
  assertEquals([execution.status, execution["output"]], ["succeeded", { city: "Köln", text: "Köln" }]);
  await until("the delivery", () => server.requests.filter(({ path }) => path === "/hook").length === 2);
  const all = { ...DEFAULTS, "user-agent": "Weir/VERSION" };
  assertEquals(server.requests.map(({ path, headers }) => [path, sentOf(headers)]), [
    ["/hook", all],
    ["/plain", all],
    ["/own", { accept: "text/csv", "accept-encoding": "identity", "user-agent": "mine/1" }],
    ["/gzip", all],
    ["/latin-1", all],
    ["/hook", all],
  ]);
});

Deno.test("outbound requests: a step sends a form and repeated parameters", async () => {
  await using server = new EchoServer(() => new Response("ok"));
  const workflow = `workflow: forms
steps:
  - name: form
    request:
      url: ${server.origin}/a?z=0
      query: { tag: ["{{ input.tag }}", x], none: "{{ input.none }}", all: "{{ input.all }}" }
      form:
        grant_type: client_credentials
        scope: ["a b", "{{ input.scopes }}", "é&="]
        "x[]": "{{ input.all }}"
        count: "{{ input.count }}"
  - name: typed
    request:
      method: PUT
      url: ${server.origin}/b
      headers: { content-type: application/x-www-form-urlencoded; charset=utf-8 }
      form: { a: "" }
  - name: empty
    request: { method: POST, url: "${server.origin}/c", form: {} }
`;
  await using folder = await WebhookFolder.make({ "forms.yaml": workflow });
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const input = { tag: "é", none: [], all: [1, true, "c&d"], scopes: ["s1", "s2"], count: 12 };
  const execution = await executed(http, "forms", input);
  assertEquals([execution.status, execution["error"]], ["succeeded", undefined]);
  const text = (body: Uint8Array) => new TextDecoder().decode(body);
  assertEquals(
    server.requests.map((
      { method, path, headers, body },
    ) => [method, path, headers["content-type"], text(body)]),
    [
      [
        "POST",
        "/a?z=0&all=1&all=true&all=c%26d&tag=%C3%A9&tag=x",
        "application/x-www-form-urlencoded",
        "grant_type=client_credentials&scope=a+b&scope=s1&scope=s2&scope=%C3%A9%26%3D&x%5B%5D=1&x%5B%5D=true&x%5B%5D=c%26d&count=12",
      ],
      ["PUT", "/b", "application/x-www-form-urlencoded; charset=utf-8", "a="],
      ["POST", "/c", "application/x-www-form-urlencoded", ""],
    ],
  );
});

/** Values that a form may not hold, by their templates, and the error of the step. */
const WRONG: Readonly<Record<string, readonly [value: string, error: RegExp]>> = {
  object: ["{{ input.object }}", /Cannot write "input\.object" into a text: .*got an object/],
  lists: ["{{ input.lists }}", /Cannot write "input\.lists" into a text: .*got a list/],
  mixed: ["a{{ input.list }}", /Cannot write "input\.list" into a text: .*got a list/],
  half: ["{{ input.half }}", /Cannot write "input\.half" into a parameter: it holds half of a character/],
};

Deno.test("outbound requests: a value that no parameter can hold fails its step", async () => {
  await using server = new EchoServer(() => new Response("ok"));
  const files = Object.entries(WRONG).map(([name, [value]]) => {
    const request = `{ url: "${server.origin}/", form: { a: "${value}" } }`;
    return [`${name}.yaml`, `workflow: ${name}\nsteps:\n- { name: call, request: ${request} }\n`];
  });
  await using folder = await WebhookFolder.make(Object.fromEntries(files));
  await using weir = await folder.serve();
  const input = String.raw`{"object":{"a":1},"lists":[[1]],"list":[1],"half":"\ud800"}`;
  for (const [name, [, error]] of Object.entries(WRONG)) {
    assertMatch(String((await executed(weir.running.addresses.http, name, input))["error"]), error);
  }
  assertEquals(server.requests.length, 0);
});

/** Runs a workflow by a trigger of its name to its end. */
async function executed(http: string, name: string, input: unknown): Promise<AnswerBody> {
  const { body: { key } } = await api(http, "/triggers", { body: { name, workflow: name } });
  const { body: { executionId } } = await api(http, `/workflows/triggers/${name}`, {
    token: key,
    body: input,
  });
  return await until("the end", async () => {
    const { body } = await api(http, `/executions/${executionId}`);
    return body["finishedAt"] !== undefined && body;
  });
}
