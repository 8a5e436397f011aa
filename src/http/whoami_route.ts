import { administratorOf, type ApiOptions, apiRoute, refused, wrongMethod } from "./api_call.ts";
import type { Route } from "./router.ts";

/** `GET /api/v1/whoami`: the name and the role of the caller, which the web page needs. */
export function whoamiRoute(options: Pick<ApiOptions, "administrators">): Route {
  return apiRoute("/api/v1/whoami", (call) => {
    const administrator = administratorOf(call.request, options);
    if ("code" in administrator) return Promise.resolve(refused(call, administrator));
    if (call.request.method !== "GET") return Promise.resolve(refused(call, wrongMethod("GET")));
    const { name, role } = administrator;
    const headers = { "content-type": "application/json" };
    return Promise.resolve({ status: 200, headers, body: JSON.stringify({ name, role }) });
  });
}
