/** A client that is generated from the OpenAPI document talks to a running service. */
import { assertEquals } from "#assert";
import { join } from "node:path";
import openApiTypes, { astToString } from "openapi-typescript";
import { OpenApiService } from "../../harness/openapi_service.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** Type errors in it are a fault of the document: `deno check` runs before it does. */
const CLIENT = `import createClient from "openapi-fetch";
import type { components, paths } from "./paths.ts";

const [baseUrl = "", token = ""] = Deno.args;
const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });

const request: components["schemas"]["RateLimitRequest"] = {
  domain: "shop",
  descriptors: [{ entries: [{ key: "account", value: "ann" }], hitsAddend: 2 }],
};
const decision = await client.POST("/json", { body: request });
const remaining: number | undefined = decision.data?.statuses[0]?.limitRemaining;

const created = await client.POST("/api/v1/endpoints", {
  body: { url: "https://127.0.0.1:9/hooks", events: ["agent.*"], concurrency: 2 },
});
const secret: string = created.data?.secret ?? "";
const listed = await client.GET("/api/v1/endpoints", { params: { query: { limit: 10 } } });
const concurrency: number | undefined = listed.data?.items[0]?.concurrency;

const trigger = await client.POST("/api/v1/triggers", { body: { name: "echo", workflow: "echo" } });
const called = await client.POST("/api/v1/workflows/triggers/{name}", {
  params: { path: { name: "echo" }, header: { "Idempotency-Key": "order-1" } },
  headers: { authorization: \`Bearer \${trigger.data?.key}\` },
  body: { total: 3 },
});
const execution: string | undefined = called.data?.executionId;

const posted = await client.POST("/api/v1/events", { body: { event: "agent.done", data: { reply: 7 } } });
const deliveries: number | undefined = posted.data?.deliveries;

const refused = await client.POST("/api/v1/endpoints", { body: { url: "ftp://example.com" } });
const problem = refused.response.status === 422 && refused.error !== undefined && "code" in refused.error
  ? [refused.error.code, refused.error.field]
  : [];
console.log(JSON.stringify({
  remaining,
  secret: secret.slice(0, 6),
  concurrency,
  execution: execution?.length,
  deliveries,
  problem,
}));
`;

Deno.test("openapi: a client with generated types calls the service", async () => {
  await using service = await OpenApiService.start();
  const folder = await Deno.makeTempDir({ prefix: "weir_client_" });
  try {
    const types = await openApiTypes(JSON.stringify(service.document));
    await Deno.writeTextFile(join(folder, "paths.ts"), astToString(types));
    await Deno.writeTextFile(join(folder, "client.ts"), CLIENT);
    const options = ["--quiet", "--frozen", "--config", join(ROOT, "deno.json")];
    await run(["check", ...options, join(folder, "client.ts")]);
    const address = `http://${service.http}`;
    const text = await run([
      "run",
      "--allow-net",
      ...options,
      join(folder, "client.ts"),
      address,
      ADMIN_TOKEN,
    ]);
    assertEquals(JSON.parse(text), {
      remaining: 3,
      secret: "whsec_",
      concurrency: 2,
      execution: 36,
      deliveries: 1,
      problem: ["invalid_field", "url"],
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** Runs Deno; answers what it prints, or throws with its errors. */
async function run(args: readonly string[]): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args: [...args], cwd: ROOT, env: { NO_COLOR: "1" } });
  const { success, stdout, stderr } = await command.output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}
