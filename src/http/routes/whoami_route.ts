import { wrongMethod } from "../../webhooks/api/problem.ts";
import { jsonAnswer } from "../../webhooks/api/route.ts";
import { administratorOf, type ApiOptions, apiRoute, refused } from "./api_call.ts";
import type { Route } from "../server/router.ts";

/** `GET /api/v1/whoami`: the name and the role of the caller, which the web page needs. */
export function whoamiRoute(options: Pick<ApiOptions, "administrators">): Route {
  return apiRoute("/api/v1/whoami", (call) => {
    const administrator = administratorOf(call.request, options);
    if ("code" in administrator) return refused(call, administrator);
    if (call.request.method !== "GET") return refused(call, wrongMethod(["GET"]));
    const { name, role } = administrator;
    return jsonAnswer(200, { name, role });
  });
}
