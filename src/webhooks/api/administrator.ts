import type { WebhookProblem } from "./problem.ts";

/** What an administrator may do: everything, or only what changes nothing. */
export type AdministratorRole = "admin" | "read";

/** A caller of the administration with a right token. */
export interface Administrator {
  /** Shown in the audit log. */
  readonly name: string;
  readonly role: AdministratorRole;
}

/** The name of the owner of `ADMIN_TOKEN`. */
export const ADMIN_NAME = "admin";

/** The problem of a caller whose role does not suffice; nothing for one who may call. */
export function roleProblem(
  { role }: Administrator,
  required: AdministratorRole,
): WebhookProblem | undefined {
  if (role === "admin" || required === "read") return undefined;
  const detail =
    "Cannot answer the call: it requires a token with the role admin, and this one has the role read";
  return { code: "role_not_allowed", detail };
}
