import type { Route } from "../server/router.ts";

/** `GET /openapi.json`: the OpenAPI document of the HTTP APIs, created by its first request. */
export function openApiRoute(version: string): Route {
  let text: string | undefined;
  return {
    path: "/openapi.json",
    methods: ["GET", "HEAD"],
    handle: async () => {
      text ??= await textOf(version);
      return new Response(text, { headers: { "content-type": "application/json" } });
    },
  };
}

async function textOf(version: string): Promise<string> {
  const { openApiDocument } = await import("../openapi/document.ts");
  return JSON.stringify(openApiDocument(version));
}
