/** The rights of an administrator: everything, or only calls that change nothing. */
export type AdministratorRole = "admin" | "read";

/** A caller of the administration with a right token. */
export interface Administrator {
  /** Shown in the audit log. */
  readonly name: string;
  readonly role: AdministratorRole;
}

/** The name of the owner of `ADMIN_TOKEN`. */
export const ADMIN_NAME = "admin";
