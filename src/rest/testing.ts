/**
 * A transport that answers by a script, for tests of code that sends requests: no network, no server.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const transport = new ScriptedTransport([{ status: 503 }, { fail: "connect" }, { body: "at last" }]);
 * const client = new Client({ fetch: transport.fetch, retry: { attempts: 3, backoffMs: 0 } });
 * const response = await client.send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals(response.body, "at last");
 * assertEquals(transport.requests.map(({ method, url }) => `${method} ${url}`), [
 *   "GET https://api.example.com/",
 *   "GET https://api.example.com/",
 *   "GET https://api.example.com/",
 * ]);
 * transport.assertDone();
 * ```
 *
 * @module
 */
export {
  type ScriptedAnswer,
  type ScriptedFailure,
  type ScriptedRequest,
  type ScriptedStep,
  ScriptedTransport,
} from "./scripted_transport.ts";
