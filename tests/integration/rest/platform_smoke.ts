/**
 * The functions of the library, tried once each on the platform that runs this. It imports nothing but the library,
 * so that its bundle runs in Node as well. Tests compare what it answers.
 */
import * as rest from "../../../src/rest/mod.ts";
import { ScriptedTransport } from "../../../src/rest/testing.ts";

/** The address of the servers of the test; without a slash at the end. */
export interface SmokePlaces {
  /** The server that `platform_server.ts` starts. */
  readonly baseURL: string;
  /** Another origin with the same paths. */
  readonly elsewhereURL: string;
  /** One whose certificate the platform does not trust. */
  readonly tlsURL: string;
  /** One that redirects with raw UTF-8, and answers with the path that it is asked for. */
  readonly rawURL: string;
  /** One where nothing listens. */
  readonly closedURL: string;
}

type SmokeCase = readonly [expected: unknown, run: (places: SmokePlaces) => Promise<unknown>];

const { Get, Post, Put } = rest;
const PLAIN = { authorization: null, "content-type": null, "x-api-key": null, "x-trace": null };
const HELLO = "hello, hello, hello";
const CODINGS = ["gzip", "x-gzip", "deflate", "deflate-raw", "br", "gzip-gzip", "identity"];
const STATUSES = [200, 201, 206, 207, 300, 400, 401, 404, 409, 418, 429, 500, 503, 599];
const FORMS = [
  ["multipart/form-data; boundary", ["name", "ü"], ["file", "a.txt", "text/plain", "text"]],
  ["application/x-www-form-urlencoded;charset=UTF-8", ["a", "1"], ["a", "2"], ["b", "ü"]],
];
const METHODS: readonly (readonly [method: rest.Method, sent: string])[] = [
  ...[Get, Post, Put, rest.Patch, rest.Delete, rest.Head, rest.Options].map((method) =>
    [method, method] as const
  ),
  ...[["PURGE", "PURGE"], ["patch", "PATCH"], ["Get", "GET"]] as const,
];

const CASES: Readonly<Record<string, SmokeCase>> = {
  "methods, whatever their letter case": [METHODS.map(([, sent]) => [200, sent]), async ({ baseURL }) => {
    const seen: unknown[] = [];
    for (const [method] of METHODS) {
      const { statusCode, headers } = await rest.send({ method, baseURL: `${baseURL}/echo` });
      seen.push([statusCode, headers["x-method"]?.[0]]);
    }
    return seen;
  }],
  "headers, query and body": [
    {
      method: "POST",
      search: "?page=1&sort=a+b&tag=b&tag=a",
      headers: { ...PLAIN, "content-type": "application/json", "x-trace": "7" },
      body: "ü",
    },
    async ({ baseURL }) => {
      const response = await rest.send({
        method: Post,
        baseURL: `${baseURL}/echo?page=1#top`,
        headers: { "X-Trace": "7" },
        queryParams: { z: undefined, tag: ["b", "a"], none: [], sort: "a b" },
        body: "ü",
      });
      return response.json();
    },
  ],
  "bytes both ways": [[0, 255, 128, 10], async ({ baseURL }) => {
    const body = new Uint8Array([0, 255, 128, 10]);
    const headers = { "content-type": "application/octet-stream" };
    const { bodyBytes } = await rest.send({ method: Put, baseURL: `${baseURL}/mirror`, headers, body });
    return [...bodyBytes];
  }],
  "repeated headers and cookies": [[["a=1", "b=2"], ["1, 2"]], async ({ baseURL }) => {
    const { headers } = await rest.send({ method: Get, baseURL: `${baseURL}/cookies` });
    return [headers["set-cookie"], headers["x-part"]];
  }],
  "any status is a result": [STATUSES.map((status) => [status, "why"]), async ({ baseURL }) => {
    const seen: unknown[] = [];
    for (const status of STATUSES) {
      const { statusCode, body } = await rest.send({ method: Get, baseURL: `${baseURL}/status/${status}` });
      seen.push([statusCode, body]);
    }
    return seen;
  }],
  "a status is thrown": [
    ["status"],
    ({ baseURL }) =>
      failure(rest.send({ method: Get, baseURL: `${baseURL}/missing` }, { throwOnStatus: true })),
  ],
  "time of an attempt": [
    ["timeout"],
    ({ baseURL }) => failure(rest.send({ method: Get, baseURL: `${baseURL}/silent` }, { timeoutMs: 40 })),
  ],
  "time in total": [["timeout"], ({ baseURL }) => {
    const options = { timeoutMs: 30, totalTimeoutMs: 100, retry: { attempts: 100, backoffMs: 1 } };
    return failure(rest.send({ method: Get, baseURL: `${baseURL}/silent` }, options));
  }],
  abort: [["aborted"], ({ baseURL }) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 20);
    return failure(rest.send({ method: Get, baseURL: `${baseURL}/silent` }, { signal: controller.signal }));
  }],
  retry: ["the second time", async ({ baseURL }) => {
    const options = { retry: { attempts: 3, backoffMs: 1 } };
    return (await rest.send({ method: Get, baseURL: `${baseURL}/second-time` }, options)).body;
  }],
  "redirect to another origin": [{ ...PLAIN, "x-trace": "7" }, async ({ baseURL }) => {
    const headers = { authorization: "Bearer KEY", "x-api-key": "KEY", "x-trace": "7" };
    const options = { sensitiveHeaders: ["X-API-Key"] };
    const response = await rest.send({ method: Get, baseURL: `${baseURL}/elsewhere`, headers }, options);
    return response.json<{ headers: unknown }>().headers;
  }],
  "interrupted body": [
    ["body_interrupted"],
    ({ baseURL }) => failure(rest.send({ method: Get, baseURL: `${baseURL}/cut` })),
  ],
  "body too large": [
    ["body_too_large"],
    ({ baseURL }) =>
      failure(rest.send({ method: Get, baseURL: `${baseURL}/parts` }, { maxResponseBytes: 5 })),
  ],
  "streamed answer": [[200, "one, two, three"], async ({ baseURL }) => {
    const { statusCode, bodyStream } = await rest.sendStream({ method: Get, baseURL: `${baseURL}/parts` });
    return [statusCode, await textOf(bodyStream)];
  }],
  "streamed body": ["one, two", async ({ baseURL }) => {
    const body = new Blob(["one, ", "two"]).stream();
    return (await rest.send({ method: Post, baseURL: `${baseURL}/mirror`, body })).body;
  }],
  hooks: [[{ ...PLAIN, "x-trace": "from the hook" }, [200]], async ({ baseURL }) => {
    const statuses: number[] = [];
    const client = new rest.Client({
      onRequest: ({ headers }) => headers.set("x-trace", "from the hook"),
      onResponse: ({ status }) => void statuses.push(status),
    });
    const response = await client.send({ method: Get, baseURL: `${baseURL}/echo` });
    return [response.json<{ headers: unknown }>().headers, statuses];
  }],
  "name that is none": [
    ["network", "dns"],
    () => failure(rest.send({ method: Get, baseURL: "http://nowhere.invalid/" })),
  ],
  "no listener": [
    ["network", "connect"],
    ({ closedURL }) => failure(rest.send({ method: Get, baseURL: closedURL })),
  ],
  "untrusted": [["network", "tls"], ({ tlsURL }) => failure(rest.send({ method: Get, baseURL: tlsURL }))],
  "refused before it is sent": [
    ["invalid_header"],
    () => failure(rest.send({ method: Get, baseURL: "http://x/", headers: { a: "b\r\nc: d" } })),
  ],
  "encoded bodies": [
    [...CODINGS.map((name) => [name, HELLO, HELLO, HELLO]), ["nothing", "", "", ""]],
    async ({ baseURL }) => {
      const seen: unknown[] = [];
      for (const name of [...CODINGS, "nothing"]) {
        const request = { method: Get, baseURL: `${baseURL}/encoded/${name}` };
        const plain = await rest.send(request);
        const bounded = await rest.send(request, { maxResponseBytes: 100 });
        const { bodyStream } = await rest.sendStream(request);
        seen.push([name, plain.body, bounded.body, await textOf(bodyStream)]);
      }
      return seen;
    },
  ],
  "a coding next to identity": [HELLO, async ({ baseURL }) => {
    // Without modules of the platform the library decodes nothing by itself.
    if (!("Deno" in globalThis || "process" in globalThis)) return HELLO;
    return (await rest.send({ method: Get, baseURL: `${baseURL}/encoded/gzip-identity` })).body;
  }],
  "a body that is not gzip is not asked for again": [[["body_interrupted"], [200]], async ({ baseURL }) => {
    const statuses: number[] = [];
    const options = {
      retry: { backoffMs: 1 },
      onResponse: ({ status }: Response) => void statuses.push(status),
    };
    const code = await failure(rest.send({ method: Get, baseURL: `${baseURL}/encoded/none` }, options));
    return [code, statuses];
  }],
  forms: [[...FORMS, ...FORMS], async ({ baseURL }) => {
    const data = new FormData();
    data.set("name", "ü");
    data.set("file", new Blob(["text"], { type: "text/plain" }), "a.txt");
    const seen: unknown[] = [];
    for (const options of [{}, { onRequest: () => {}, retry: { backoffMs: 1, methods: [Post] } }]) {
      for (const body of [data, new URLSearchParams("a=1&a=2&b=%C3%BC")]) {
        const response = await rest.send({ method: Post, baseURL: `${baseURL}/form`, body }, options);
        seen.push(response.json());
      }
    }
    return seen;
  }],
  "a length that is wrong": [[["invalid_header"], ["invalid_header"]], async ({ baseURL }) => {
    const seen: unknown[] = [];
    for (const length of ["3", "9"]) {
      const request = { method: Post, baseURL: `${baseURL}/mirror`, body: "bytes" };
      seen.push(await failure(rest.send({ ...request, headers: { "content-length": length } })));
    }
    return seen;
  }],
  "shared memory": ["bytes", async ({ baseURL }) => {
    const body = new Uint8Array(new SharedArrayBuffer(5));
    body.set([98, 121, 116, 101, 115]);
    return (await rest.send({ method: Post, baseURL: `${baseURL}/mirror`, body })).body;
  }],
  "nothing given": [404, async ({ baseURL }) => {
    const given = { headers: null, queryParams: null, body: null } as unknown as Partial<rest.Request>;
    return (await rest.send({ ...given, method: Get, baseURL: `${baseURL}/missing` })).statusCode;
  }],
  "a key of a hook": ["the second time", async ({ baseURL }) => {
    const options = {
      retry: { attempts: 3, backoffMs: 1 },
      onRequest: ({ headers }: globalThis.Request) => headers.set("Idempotency-Key", "k"),
    };
    const request = { method: Post, baseURL: `${baseURL}/second-time/post`, body: "{}" };
    return (await rest.send(request, options)).body;
  }],
  "a location in UTF-8": [
    "/caf%C3%A9?q=%C3%BC",
    async ({ rawURL }) => (await rest.send({ method: Get, baseURL: `${rawURL}/to` })).body,
  ],
  "the steps": ["nothing here", async ({ baseURL }) => {
    const request = { method: Get, baseURL: `${baseURL}/missing` };
    const webResponse = await rest.makeRequest(rest.buildRequestObject(request));
    return (await rest.buildResponse(webResponse)).body;
  }],
  "scripted transport": [[["network", "dns"], 201, ["GET", "POST"]], async () => {
    const transport = new ScriptedTransport([{ fail: "dns" }, { status: 201, body: "{}" }]);
    const client = new rest.Client({ fetch: transport.fetch });
    const first = await failure(client.send({ method: Get, baseURL: "https://api.example.com/" }));
    const second = await client.send({ method: Post, baseURL: "https://api.example.com/", body: "{}" });
    transport.assertDone();
    return [first, second.statusCode, transport.requests.map(({ method }) => method)];
  }],
};

/** The expected result of each case, by its name. */
export const EXPECTED: Readonly<Record<string, unknown>> = Object.fromEntries(
  Object.entries(CASES).map(([name, [expected]]) => [name, expected]),
);

/** Tries everything; answers what came of each case by its name, in values that JSON can hold. */
export async function platformSmoke(places: SmokePlaces): Promise<Record<string, unknown>> {
  const results: Record<string, unknown> = {};
  for (const [name, [, run]] of Object.entries(CASES)) {
    results[name] = await run(places).catch((error) => `failed: ${error}`);
  }
  return results;
}

/** Code and kind of the error that a request ends with. */
async function failure(sent: Promise<rest.Response>): Promise<readonly string[]> {
  try {
    return ["no error", String((await sent).statusCode)];
  } catch (error) {
    if (!(error instanceof rest.RestError)) throw error;
    return error.kind === undefined ? [error.code] : [error.code, error.kind];
  }
}

async function textOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    text += decoder.decode(value, { stream: true });
  }
  return text;
}
