/** The client credentials of a token server, with which access tokens are requested. */
export interface TokenGrant {
  readonly type: "oauth2";
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  /** `header` when absent. */
  readonly credentialsIn?: "header" | "body" | undefined;
}

/** The authentication of an endpoint with its secrets. */
export type OpenedAuthentication =
  | { readonly type: "basic"; readonly user: string; readonly password: string }
  | { readonly type: "bearer"; readonly token: string }
  | TokenGrant;

/** The client certificate with its key, and the authorities of the receiver, in PEM. */
export interface OpenedTls {
  /** Followed by its intermediate certificates. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  readonly authorities?: readonly string[] | undefined;
}
