import { assertEquals } from "#assert";
import { ran } from "../../harness/administration_fixture.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

/** Keys like integers, repeated keys, numbers beyond 2^53, escapes, white space, `__proto__`, and no U+2028. */
const PAYLOAD =
  `{ "b" : 1, "10": 1.0,"9":12345678901234567890, "b": {"2":[ 1E2 , {"1":0,"0":-0.0} ],"1":null},
  "path": "a\\/b \\u00e9 é 😀 \\ud83d\\ude00 \\u2028", "__proto__": {"a":1}, "":"" , "constructor":{"2":{},"1":[]}}`;
const NESTED = `{"2":[ 1E2 , {"1":0,"0":-0.0} ],"1":null}`;
const ANSWER = `{ "z":1, "10":"x", "2": { "10":1.10, "2":"\\u0041" }, "z" : [ ] }`;
const WORKFLOW = (url: string) =>
  `workflow: echo
steps:
  - name: ask
    request: { method: POST, url: "${url}/ask", body: "{{ input }}" }
  - name: mixed
    request:
      method: POST
      url: "${url}/mixed"
      body:
        z: { "20": "{{ input.b }}", "3": fixed, "1": { b: 1, "0": 2 } }
        "7": ["{{ input[\\"10\\"] }}", "{{ input.path }}", "x {{ input[\\"9\\"] }}"]
        a: "{{ steps.ask.body }}"
  - name: result
    set: { "9": "{{ steps.ask.body }}", "1": "{{ input }}", a: "{{ steps.mixed.status }}" }
`;
/** `input.b` is the last one, and the text of a template in a text is the value. */
const MIXED = (nested: string) =>
  `{"z":{"20":${nested},"3":"fixed","1":{"b":1,"0":2}},` +
  `"7":[1.0,"a\\/b \\u00e9 é 😀 \\ud83d\\ude00 \\u2028","x 12345678901234567890"],"a":${ANSWER}}`;
const OUTPUT = (input: string) => `{"9":${ANSWER},"1":${input},"a":200}`;

/** Answers every request with `ANSWER`, and keeps the bodies by their paths. */
class JsonReceiver implements AsyncDisposable {
  readonly bodies = new Map<string, string[]>();
  readonly #server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { pathname } = new URL(request.url);
    const bodies = this.bodies.get(pathname) ?? [];
    this.bodies.set(pathname, bodies);
    const bytes = await request.bytes();
    bodies.push(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
    return new Response(ANSWER, { headers: { "content-type": "application/vnd.x+json" } });
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async body(path: string, count = 1): Promise<string> {
    await until(`${count} bodies at ${path}`, () => (this.bodies.get(path)?.length ?? 0) >= count);
    return this.bodies.get(path)?.[count - 1] ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

Deno.test("webhooks: JSON arrives as it was sent: events, steps, outputs, completion events and test calls", async () => {
  await using receiver = new JsonReceiver();
  await using folder = await WebhookFolder.make({ "echo.yaml": WORKFLOW(receiver.url) });
  await using weir = await folder.serve();
  const { http } = weir.running.addresses;
  const filter = { "b.1": [null] };
  for (
    const [path, fields] of [["/events", { events: ["a.*"], filter }], ["/ends", {
      events: ["workflow.*"],
    }]] as const
  ) {
    await api(http, "/endpoints", { body: { url: `${receiver.url}${path}`, ...fields } });
  }
  const posted = await api(http, "/events", { body: `{"data" : ${PAYLOAD} , "event":"a.b"}` });
  assertEquals(posted.body["deliveries"], 1);
  assertEquals(await receiver.body("/events"), `{"event":"a.b","data":${PAYLOAD}}`);
  const { items: [delivery] } = (await api(http, `/deliveries?event=a.b`)).body;
  await until("the acknowledgement", async () => {
    return (await api(http, `/deliveries/${delivery?.id}`)).body.state === "acknowledged";
  });
  await api(http, `/deliveries/${delivery?.id}/resend`, { method: "POST" });
  assertEquals(await receiver.body("/events", 2), await receiver.body("/events"));

  const { body: { id, key } } = await api(http, "/triggers", { body: { name: "echo", workflow: "echo" } });
  // The command leaves out the white space between values.
  const calls: readonly (readonly [sent: string, call: () => Promise<unknown>])[] = [
    [PAYLOAD, () => api(http, "/workflows/triggers/echo", { token: key, body: PAYLOAD })],
    [PAYLOAD, () => api(http, `/triggers/${id}/call`, { body: `{ "data": ${PAYLOAD} }` })],
    [shown(PAYLOAD), () => called(http, ["triggers", "call", "echo", "--data", PAYLOAD])],
  ];
  for (const [index, [sent, call]] of calls.entries()) {
    await call();
    const count = index + 1;
    assertEquals(await receiver.body("/ask", count), sent);
    assertEquals(await receiver.body("/mixed", count), MIXED(sent === PAYLOAD ? NESTED : shown(NESTED)));
    const end = await receiver.body("/ends", count);
    const at = end.indexOf(',"output":');
    assertEquals(end.slice(at), `,"output":${OUTPUT(sent)}}}`);
  }
  await called(http, ["events", "post", "a.c", "--data", PAYLOAD]);
  assertEquals(await receiver.body("/events", 3), `{"event":"a.c","data":${shown(PAYLOAD)}}`);
  await shownAsSent(http, posted.body.id);
});

/** A text without the white space between its values. */
function shown(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => part.startsWith('"') ? part : "");
}

/** The shown text keeps all but the white space between values. */
async function shownAsSent(http: string, eventId: string): Promise<void> {
  const show = async (path: string) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    return await (await fetch(`http://${http}/api/v1${path}`, { headers })).text();
  };
  const { items } = (await api(http, "/executions")).body;
  const execution = await show(`/executions/${items[0]?.id}`);
  for (
    const part of [
      `"input":${shown(PAYLOAD)}`,
      `"output":${shown(OUTPUT(PAYLOAD))}`,
      `"body":${shown(ANSWER)}`,
    ]
  ) {
    assertEquals([part, execution.includes(part)], [part, true]);
  }
  assertEquals((await show(`/events/${eventId}`)).includes(`"data":${shown(PAYLOAD)}`), true);
}

async function called(http: string, args: readonly string[]): Promise<void> {
  const { code, stderr } = await ran([...args, "--url", `http://${http}`], { environment: { ADMIN_TOKEN } });
  assertEquals([code, stderr.includes("Cannot")], [0, false], stderr);
}
