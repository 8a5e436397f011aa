/** The table of errors in the README of the library: every code is in it, with the text of its errors. */
import {
  Client,
  type ClientOptions,
  Get,
  type Request,
  RestError,
  type SendOptions,
} from "../../../src/rest/mod.ts";
import { type ScriptedStep, ScriptedTransport } from "../../../src/rest/testing.ts";
import { assertEquals } from "#assert";
import { FakeClock } from "../../harness/fake_clock.ts";

const ROOT = new URL("../../../", import.meta.url);
const URL_OF_ITEMS = "https://api.example.com/items";

/** A call that ends with an error. */
interface Failing {
  readonly request?: Partial<Request>;
  readonly options?: ClientOptions & SendOptions;
  readonly step?: ScriptedStep;
}

/** For each code a call that ends with it, in the order of the table. */
const CALLS: Readonly<Record<string, Failing>> = {
  invalid_method: { request: { method: "" } },
  invalid_url: { request: { baseURL: "api.example.com" } },
  invalid_header: { request: { headers: { "x-note": "a\nb" } } },
  invalid_body: { request: { body: "{}" } },
  network: { step: { fail: "connect" } },
  timeout: { step: { fail: "hang" }, options: { timeoutMs: 20, clock: FakeClock.byWaits() } },
  aborted: { step: { fail: "hang" }, options: { signal: AbortSignal.abort() } },
  body_interrupted: { step: { body: "half", interrupted: true } },
  body_too_large: { step: { body: "x".repeat(1_001) }, options: { maxResponseBytes: 1_000 } },
  status: { step: { status: 404 }, options: { throwOnStatus: true } },
  invalid_json: { step: { body: "no JSON" } },
};

Deno.test("the table of errors in the README has every code", async () => {
  const source = await Deno.readTextFile(new URL("src/rest/rest_error.ts", ROOT));
  const union = /RestErrorCode =([^;]*);/.exec(source)?.[1] ?? "";
  const codes = Array.from(union.matchAll(/"(\w+)"/g), ([, code]) => code);
  assertEquals([...(await tableOfErrors()).keys()], codes);
  assertEquals(Object.keys(CALLS), codes);
});

for (const [code, failing] of Object.entries(CALLS)) {
  Deno.test(`the table of errors in the README has the words of ${code}`, async () => {
    const error = await errorOf(failing);
    const text = (await tableOfErrors()).get(code) ?? "";
    const [, verb = "Cannot send", state = ""] = /^(?:`(.*) …`: )?(.*?)(?: \(what .*\))?$/.exec(text) ?? [];
    const [start, words = ""] = error.message.split(/ \S+ "[^"]*": /);
    assertEquals([error.code, start, words.replace(/ \([^)]*\)$/, "")], [code, verb, state]);
  });
}

/** The texts of the table by code. */
async function tableOfErrors(): Promise<ReadonlyMap<string, string>> {
  const readme = await Deno.readTextFile(new URL("src/rest/README.md", ROOT));
  const section = readme.slice(
    readme.indexOf("\n## Errors\n"),
    readme.indexOf("\n## Comparison\n"),
  );
  return new Map(
    Array.from(
      section.matchAll(/^\| `(\w+)` *\|[^|]*\| (.*?) *\|$/gm),
      ([, code = "", text = ""]) => [code, text],
    ),
  );
}

async function errorOf({ request, options = {}, step }: Failing): Promise<RestError> {
  const { signal, ...others } = options;
  const transport = new ScriptedTransport(step === undefined ? [] : [step]);
  const client = new Client({ ...others, fetch: transport.fetch });
  try {
    const response = await client.send({ method: Get, baseURL: URL_OF_ITEMS, ...request }, { signal });
    response.json();
  } catch (error) {
    if (error instanceof RestError) return error;
    throw error;
  }
  throw new Error("Cannot find the error: the call went well");
}
