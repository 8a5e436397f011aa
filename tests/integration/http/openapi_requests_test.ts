/** What the OpenAPI document says of requests is what the service accepts and refuses. */
import { assertEquals } from "@std/assert";
import type { Schema } from "../../harness/openapi_schema.ts";
import { OpenApiService, type PlacedOperation, placedOperations } from "../../harness/openapi_service.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_weir.ts";

type Fields = Readonly<Record<string, unknown>>;

Deno.test("openapi: fields of a body that their schemas do not allow are refused by name", async () => {
  await using service = await OpenApiService.start();
  const paths = await records(service);
  for (const placed of placedOperations(service.document)) {
    const { schema, example } = placed.operation.requestBody?.content["application/json"] ?? {};
    if (schema === undefined || placed.operation.operationId === "callTrigger") continue;
    const { properties = {}, required = [], additionalProperties } = service.schemas.resolved(schema);
    assertEquals(additionalProperties, false);
    const base = example as Fields;
    const refused: [string, Fields][] = [["unknownField", { ...base, unknownField: 1 }]];
    for (const name of required as readonly string[]) {
      const { [name]: _, ...rest } = base;
      refused.push([name, rest]);
    }
    for (const [name, one] of Object.entries(properties)) {
      for (const value of notAllowed(service, one, base[name])) {
        refused.push([name, { ...base, [name]: value }]);
      }
    }
    for (const [name, body] of refused) {
      const { status, field } = await send(service, placed, { path: paths(placed.path), body });
      const expected = placed.path === "/json" ? 400 : 422;
      assertEquals(
        [status, field.split(/[.[]/)[0]],
        [expected, name],
        `${placed.path} ${JSON.stringify(body).slice(0, 200)}`,
      );
    }
  }
});

Deno.test("openapi: the bounds of a schema are still accepted", async () => {
  await using service = await OpenApiService.start();
  const paths = await records(service);
  for (const operationId of ["updateEndpoint", "updateTrigger"]) {
    const placed = service.operation(operationId);
    const schema = placed.operation.requestBody?.content["application/json"]?.schema ?? {};
    for (const [name, one] of Object.entries(service.schemas.resolved(schema).properties ?? {})) {
      for (const value of atBounds(one)) {
        const answer = await send(service, placed, { path: paths(placed.path), body: { [name]: value } });
        assertEquals(answer.status, 200, `${operationId} ${name} ${value}`);
      }
    }
  }
});

Deno.test("openapi: parameters of a query that their schemas do not allow are refused by name", async () => {
  await using service = await OpenApiService.start();
  for (const placed of placedOperations(service.document)) {
    if (!placed.path.startsWith("/api/")) continue;
    for (const { name, in: place, schema } of placed.operation.parameters ?? []) {
      if (place !== "query") continue;
      for (
        const value of notAllowed(service, schema).filter((one) => one !== null && typeof one !== "boolean")
      ) {
        const query = `${name}=${encodeURIComponent(String(value))}`;
        const { status, field } = await send(service, placed, { path: placed.path, query });
        assertEquals([status, field], [422, name], `${placed.path} ${query.slice(0, 100)}`);
      }
      for (const value of atBounds(schema)) {
        const { status } = await send(service, placed, { path: placed.path, query: `${name}=${value}` });
        assertEquals(status, 200, `${placed.path} ${name}=${value}`);
      }
    }
  }
});

/** Values that a schema does not allow, by the keywords that it has; too long a list repeats an item of the example. */
function notAllowed(service: OpenApiService, schema: Schema, example?: unknown): unknown[] {
  const { type, maxLength, minimum, maximum, maxItems, minItems, format, pattern, items } = service.schemas
    .resolved(schema);
  const item = Array.isArray(example) ? example[0] : items === undefined ? undefined : exampleOf(items);
  const allowed = [
    ...(typeof maxLength === "number" ? ["a".repeat(maxLength + 1)] : []),
    ...(typeof minimum === "number" ? [minimum - 1] : []),
    ...(typeof maximum === "number" ? [maximum + 1] : []),
    ...(typeof maxItems === "number" ? [Array(maxItems + 1).fill(item)] : []),
    ...(minItems === 1 ? [[]] : []),
    ...(format === undefined && pattern === undefined && schema["enum"] === undefined
      ? []
      : ["no such value!"]),
    ...(String(type).includes("integer") ? [1.5, "x"] : []),
    ...(type === undefined ? [] : [{ unexpected: true }]),
    ...(type === "object" || String(type).includes("object") ? [[]] : []),
    ...(type === "boolean" ? ["yes", 1] : []),
  ];
  return allowed.filter((value) => service.schemas.problems(schema, value).length > 0);
}

function atBounds({ type, minimum, maximum, enum: choices }: Schema): unknown[] {
  const numbers = String(type).includes("integer") ? [minimum, maximum] : [];
  return [...numbers.filter((one) => typeof one === "number"), ...(Array.isArray(choices) ? choices : [])];
}

function exampleOf({ type }: Schema): unknown {
  return type === "string" ? "a" : { a: "b" };
}

/** Creates a record of each kind with an identifier, for the paths that have one. */
async function records(service: OpenApiService): Promise<(path: string) => string> {
  const url = "https://127.0.0.1:9/";
  const endpoint = (await service.call("createEndpoint", { status: 201, body: { url } })).body.id;
  const trigger =
    (await service.call("createTrigger", { status: 201, body: { name: "a", workflow: "echo" } })).body.id;
  return (path) => path.replace("{id}", path.includes("/triggers/") ? trigger : endpoint);
}

async function send(
  service: OpenApiService,
  { method }: PlacedOperation,
  { path, query = "", body }: { readonly path: string; readonly query?: string; readonly body?: unknown },
): Promise<{ readonly status: number; readonly field: string }> {
  const response = await fetch(`http://${service.http}${path}?${query}`, {
    method,
    headers: { "authorization": `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const { field = "" } = text === "" ? {} : JSON.parse(text);
  return { status: response.status, field };
}
