import type { TlsIdentity } from "../../net/outbound/dial.ts";
import type { OpenedAuthentication, OpenedTls } from "../model/credentials.ts";
import type { Endpoint, Sealed } from "../model/records.ts";
import type { VersionedGrant } from "./access_tokens.ts";

/** Opens what was sealed. */
export interface Unsealer {
  unseal(sealed: Sealed): Promise<string>;
}

/** The credentials of a delivery. */
interface DeliveryCredentials {
  /** The header; absent with a grant, whose access token it needs. */
  readonly authorization?: string | undefined;
  readonly grant?: VersionedGrant | undefined;
  readonly identity?: TlsIdentity | undefined;
  /** Secrets that a response may repeat in addition to the headers. */
  readonly secrets?: readonly string[] | undefined;
}

/** Opens the credentials of an endpoint. Rejects where their key is missing. */
export async function openCredentials(
  { id, sealedAuthentication, sealedTls }: Pick<Endpoint, "id" | "sealedAuthentication" | "sealedTls">,
  secretBox: Unsealer,
): Promise<DeliveryCredentials> {
  const [authentication, tls] = await Promise.all([
    sealedAuthentication && secretBox.unseal(sealedAuthentication),
    sealedTls && secretBox.unseal(sealedTls),
  ]);
  return {
    ...(authentication && authenticationOf(JSON.parse(authentication), id, versionOf(sealedAuthentication))),
    ...(tls && { identity: { id: versionOf(sealedTls), ...JSON.parse(tls) as OpenedTls } }),
  };
}

function authenticationOf(
  authentication: OpenedAuthentication,
  endpointId: string,
  version: string,
): DeliveryCredentials {
  switch (authentication.type) {
    case "basic": {
      const { user, password } = authentication;
      const credentials = new TextEncoder().encode(`${user}:${password}`).toBase64();
      return { authorization: `Basic ${credentials}`, secrets: [password] };
    }
    case "bearer":
      return { authorization: `Bearer ${authentication.token}` };
    case "oauth2":
      return { grant: { ...authentication, endpointId, version }, secrets: [authentication.clientSecret] };
  }
}

/** Differs for each encryption: it begins with random bytes. */
function versionOf(sealed: Sealed | undefined): string {
  return sealed?.bytes.subarray(0, 16).toHex() ?? "";
}
