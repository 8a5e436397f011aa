import { Administrators } from "../../src/http/routes/administrators.ts";
import type { Administrator } from "../../src/webhooks/api/administrator.ts";

/** The owner of `ADMIN_TOKEN`. */
export const ADMINISTRATOR: Administrator = { name: "admin", role: "admin" };

/** No administrator, for a port without the administration. */
export const NO_ADMINISTRATORS = new Administrators();

/** The owner of this token alone. */
export function administratorWith(token: string): Administrators {
  return new Administrators([{ ...ADMINISTRATOR, token }]);
}
