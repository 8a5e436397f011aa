import type { Fields } from "./field.ts";

const SOME = { set: "always", shown: "sometimes" } as const;
const SECRET = { type: "secret", set: "always", shown: "never" } as const;
/** Without control characters, and not empty. */
const PRINTED = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";
const PRINTED_WORDS = "a text that is not empty, without control characters";

/** The authentication of deliveries to a receiver. Each type has its fields. */
export const AUTHENTICATION = {
  type: {
    type: "choice",
    choices: ["basic", "bearer", "oauth2"],
    words:
      "`basic` for a user and a password, `bearer` for a token, `oauth2` for tokens of an OAuth 2 server by client credentials.",
    set: "always",
    isRequired: true,
    flag: "auth",
    value: "TYPE",
    help: "authentication to the receiver: basic, bearer or oauth2",
    label: "Authentication",
  },
  user: {
    ...SOME,
    type: "text",
    words: "The user; only with `basic`.",
    max: 256,
    pattern: "^[^:\\u0000-\\u001f\\u007f-\\u009f]+$",
    expected: "a user without colons and control characters",
    flag: "auth-user",
    value: "USER",
    help: "user of basic",
    label: "User",
  },
  password: {
    ...SECRET,
    words: "The password; only with `basic`.",
    max: 1_024,
    pattern: PRINTED,
    expected: PRINTED_WORDS,
    flag: "auth-password-file",
    help: "file with the password of basic; - for standard input",
    label: "Password",
  },
  token: {
    ...SECRET,
    words: "The token; only with `bearer`.",
    max: 4_096,
    pattern: "^[!-~]+$",
    expected: "visible ASCII characters without blanks",
    flag: "auth-token-file",
    help: "file with the token of bearer; - for standard input",
    label: "Token",
  },
  tokenUrl: {
    ...SOME,
    type: "url",
    words: "The URL of the token server, with the same restrictions as `url`; only with `oauth2`.",
    max: 2_048,
    flag: "auth-token-url",
    help: "URL of the token server of oauth2",
    label: "Token server",
    hint: "https, and an address that the service may call",
  },
  clientId: {
    ...SOME,
    type: "text",
    words: "The identifier of the client; only with `oauth2`.",
    max: 1_024,
    pattern: PRINTED,
    expected: PRINTED_WORDS,
    flag: "auth-client-id",
    value: "ID",
    help: "identifier of the client of oauth2",
    label: "Client identifier",
  },
  clientSecret: {
    ...SECRET,
    words: "The secret of the client; only with `oauth2`.",
    max: 1_024,
    pattern: PRINTED,
    expected: PRINTED_WORDS,
    flag: "auth-client-secret-file",
    help: "file with the secret of the client of oauth2; - for standard input",
    label: "Client secret",
  },
  scope: {
    ...SOME,
    type: "text",
    words: "The scopes of the token, separated by spaces; only with `oauth2`.",
    max: 1_024,
    pattern: "^[!#-\\[\\]-~]+(?: [!#-\\[\\]-~]+)*$",
    expected: "scopes separated by spaces",
    flag: "auth-scope",
    value: "SCOPE",
    help: "scopes of the token of oauth2, separated by spaces",
    label: "Scope",
  },
  audience: {
    ...SOME,
    type: "text",
    words: "The audience of the token, which some servers require; only with `oauth2`.",
    max: 1_024,
    pattern: PRINTED,
    expected: PRINTED_WORDS,
    flag: "auth-audience",
    help: "audience of the token of oauth2",
    label: "Audience",
  },
  credentialsIn: {
    ...SOME,
    type: "choice",
    choices: ["header", "body"],
    words:
      "Where the token server expects the client's credentials: `header` (default) for HTTP Basic, or `body`; only with `oauth2`.",
    flag: "auth-credentials-in",
    value: "PLACE",
    help: "place of the client's credentials in token requests: header (default) or body",
    label: "Credentials in",
  },
} as const satisfies Fields;

/** The fields of each type, those that it requires first. */
export const AUTHENTICATION_PARTS = {
  basic: { required: ["user", "password"], optional: [] },
  bearer: { required: ["token"], optional: [] },
  oauth2: {
    required: ["tokenUrl", "clientId", "clientSecret"],
    optional: ["scope", "audience", "credentialsIn"],
  },
} as const satisfies Readonly<
  Record<
    (typeof AUTHENTICATION.type.choices)[number],
    Readonly<Record<"required" | "optional", readonly (keyof typeof AUTHENTICATION)[]>>
  >
>;

/** The client certificate of deliveries, and the authorities that the receiver's certificate has to be issued by. */
export const ENDPOINT_TLS = {
  certificate: {
    type: "pem",
    words: "The client certificate in PEM, followed by its intermediate certificates; requires `key`.",
    max: 16_384,
    set: "always",
    shown: "never",
    flag: "tls-cert",
    help: "PEM file with the client certificate and its intermediate certificates",
    label: "Client certificate",
  },
  key: {
    type: "pem",
    words: "The private key of the certificate in PEM, without a password.",
    max: 16_384,
    set: "always",
    shown: "never",
    flag: "tls-key",
    help: "PEM file with the private key of the client certificate; - for standard input",
    label: "Private key",
  },
  ca: {
    type: "pem",
    words:
      "Authorities in PEM: the certificate of the receiver has to be issued by one of them, instead of one that Weir trusts otherwise.",
    max: 32_768,
    set: "always",
    shown: "never",
    flag: "tls-ca",
    help: "PEM file with the only authorities that may issue the certificate of the receiver",
    label: "Authorities of the receiver",
  },
  subject: { type: "text", words: "The subject of the client certificate.", shown: "sometimes" },
  expiresAt: {
    type: "time",
    words: "The time at which the client certificate, or one of its intermediate certificates, expires.",
    shown: "sometimes",
  },
  authorities: { type: "texts", words: "The subjects of the authorities.", shown: "sometimes" },
} as const satisfies Fields;
