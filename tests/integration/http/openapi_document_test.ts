import { Validator } from "@seriousme/openapi-schema-validator";
import { assertEquals } from "#assert";
import config from "../../../deno.json" with { type: "json" };
import { OpenApiService, placedOperations } from "../../harness/openapi_service.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { WebhookFolder } from "../../harness/webhook_weir.ts";

/** Of the debug port: files of the web page and its events are no API. */
const PAGE = /^\/ui(?:\/|$)/;
const METHODS = ["GET", "POST", "PATCH", "DELETE"];

Deno.test("openapi: the document is a valid one of OpenAPI 3.1 for this version", async () => {
  await using service = await OpenApiService.start();
  const { document } = service;
  const { valid, errors } = await new Validator().validate(structuredClone({ ...document }));
  assertEquals([valid, errors], [true, undefined]);
  assertEquals([document.openapi, document.info.version], ["3.1.0", config.version]);
});

Deno.test("openapi: each operation has its own name, a summary, and examples that its schemas allow", async () => {
  await using service = await OpenApiService.start();
  const operations = placedOperations(service.document);
  assertEquals(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length);
  const wrong = operations.flatMap(({ operation: { operationId, summary, requestBody, responses } }) => {
    const contents = [requestBody?.content, ...Object.values(responses).map(({ content }) => content)];
    const media = contents.flatMap((content) => Object.values(content ?? {}));
    const problems = media.flatMap(({ schema, example, examples = {} }) => {
      const values = [
        ...(example === undefined ? [] : [example]),
        ...Object.values(examples).map((one) => one.value),
      ];
      if (values.length === 0) return ["no example"];
      return values.flatMap((value) => service.schemas.problems(schema, value));
    });
    return [...problems, ...(/^[A-Z][a-z]+ .*[^.]$/.test(summary) ? [] : [summary])].map((problem) =>
      `${operationId}: ${problem}`
    );
  });
  assertEquals(wrong, []);
});

Deno.test("openapi: each schema is a part of an operation", async () => {
  await using service = await OpenApiService.start();
  const { document } = service;
  const text = JSON.stringify(document);
  const names = Object.keys(document.components.schemas);
  assertEquals(names.filter((name) => !text.includes(`"#/components/schemas/${name}"`)), []);
});

/** Only triggers that are made for it answer them, and a refusal does not tell which exist. */
const ON_REQUEST = ["checkTrigger", "probeTrigger"];

Deno.test("openapi: the paths and methods of the document are those that the service has", async () => {
  await using service = await OpenApiService.start();
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  for (const [path, item] of Object.entries(service.document.paths)) {
    const isDebug = Object.hasOwn(item, "servers");
    const url = `http://${isDebug ? service.debug : service.http}${path.replace(/\{\w+\}/g, "x")}`;
    const response = await fetch(url, { method: "PUT", headers });
    await response.body?.cancel();
    const documented = METHODS.filter((method) => {
      const { operationId } = item[method.toLowerCase()] ?? {};
      return operationId !== undefined && !ON_REQUEST.includes(operationId);
    });
    const allowed = response.headers.get("allow")?.split(", ").filter((method) => method !== "HEAD") ?? [];
    assertEquals([response.status, allowed.toSorted()], [405, documented.toSorted()], path);
  }
  const index = await (await fetch(`http://${service.debug}/`)).text();
  const listed = index.trim().split("\n").map((line) => line.slice(0, line.indexOf(": ")));
  const covers = (pattern: string) =>
    Object.keys(service.document.paths).some((path) =>
      pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern
    );
  assertEquals(listed.filter((pattern) => !PAGE.test(pattern) && !covers(pattern)), []);
});

Deno.test("openapi: it is served where the administration is, and nowhere without its token", async () => {
  const answer = async (address: string, method = "GET") => {
    const response = await fetch(`http://${address}/openapi.json`, { method });
    const text = await response.text();
    return [response.status, response.headers.get("content-type"), text === "" ? "empty" : text.slice(0, 12)];
  };
  const served = [200, "application/json", '{"openapi":"'];
  const absent = [404, "text/plain; charset=utf-8", "404 page not"];
  {
    await using fixture = await ServeFixture.start({ env: { ADMIN_TOKEN } });
    const { httpAddress: http, debugAddress: debug } = fixture;
    assertEquals([await answer(http), await answer(debug)], [served, served]);
    assertEquals(await answer(http, "HEAD"), [200, "application/json", "empty"]);
    assertEquals((await answer(http, "POST")).slice(0, 2), [405, "application/problem+json"]);
  }
  {
    await using fixture = await ServeFixture.start({ env: { ADMIN_TOKEN, ADMIN_ADDR: "127.0.0.1:0" } });
    const [, address = ""] = /Listening for administration on '([^']+)'/.exec(fixture.log.join("\n")) ?? [];
    assertEquals([await answer(address), await answer(fixture.httpAddress)], [served, absent]);
  }
  await using folder = await WebhookFolder.make();
  const { ADMIN_TOKEN: _, ...env } = folder.env;
  await using fixture = await ServeFixture.start({ env });
  assertEquals([await answer(fixture.httpAddress), await answer(fixture.debugAddress)], [absent, absent]);
});
