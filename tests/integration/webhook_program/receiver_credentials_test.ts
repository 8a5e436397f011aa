/** Authentication to receivers and client certificates, by the front door, with real servers of tokens and of TLS. */
import { assertEquals, assertMatch } from "#assert";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { type CertificateFiles, type Certificates, makeCertificates } from "../../harness/certificates.ts";
import { EchoServer } from "../../harness/rest_fixture.ts";
import type { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import type { AnswerBody } from "../../harness/webhook_client.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const read = (path: string) => Deno.readTextFile(path);

async function pemOf({ certFile, keyFile }: CertificateFiles) {
  return { certificate: await read(certFile), key: await read(keyFile) };
}

/** A receiver that requires a client certificate, and keeps the paths of requests with the names that it was shown. */
class TlsReceiver implements AsyncDisposable {
  readonly clients: string[] = [];
  readonly sockets = new Set<TLSSocket>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start({ server: files, authority, otherAuthority }: Certificates): Promise<TlsReceiver> {
    const { certificate: cert, key } = await pemOf(files);
    const ca = [await read(authority.certFile), await read(otherAuthority.certFile)];
    const server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true });
    const receiver = new TlsReceiver(server);
    server.on("request", (request, response) => {
      const socket = request.socket as TLSSocket;
      receiver.sockets.add(socket);
      receiver.clients.push(`${request.url} ${socket.getPeerCertificate().subject?.CN}`);
      request.resume().on("end", () => response.end("{}"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Posts an event and returns the last attempt of its delivery to an endpoint, and why it has not arrived. */
async function attempted(http: string, endpointId: unknown): Promise<AnswerBody> {
  const { body: event } = await api(http, "/events", { body: { event: "a.b", data: {} } });
  return await until("an attempt", async () => {
    const { body: { items } } = await api(http, `/deliveries?eventId=${event.id}&endpointId=${endpointId}`);
    const [listed] = items as AnswerBody[];
    if (listed === undefined) return undefined;
    const { body } = await api(http, `/deliveries/${listed.id}`);
    const last = (body["attempts"] as AnswerBody[]).at(-1);
    return last?.["finishedAt"] === undefined ? undefined : { ...last, why: body["why"], id: listed.id };
  });
}

async function endpointOf(weir: ServeFixture, body: Readonly<Record<string, unknown>>): Promise<AnswerBody> {
  const answer = await api(weir.httpAddress, "/endpoints", { body });
  assertEquals(answer.status, 201, JSON.stringify(answer.body));
  return answer.body;
}

async function edit(weir: ServeFixture, id: unknown, body: unknown): Promise<AnswerBody> {
  const answer = await api(weir.httpAddress, `/endpoints/${id}`, { method: "PATCH", body });
  assertEquals(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

Deno.test("credentials: basic and bearer are sent, and shown nowhere", async () => {
  await using receiver = new EchoServer(({ headers }) => {
    const [, shown = ""] = headers["authorization"]?.split(" ") ?? [];
    const decoded = shown.includes("token") ? shown : new TextDecoder().decode(Uint8Array.fromBase64(shown));
    return Response.json({ shown, decoded, escaped: encodeURIComponent(decoded) });
  });
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const http = weir.httpAddress;
  const authentication = { type: "basic", user: "weir", password: "pass wörd-1" };
  const { id, ...made } = await endpointOf(weir, { url: receiver.origin, authentication });
  assertEquals(made["authentication"], { type: "basic", user: "weir" });
  const first = await attempted(http, id);
  const basic = `Basic ${new TextEncoder().encode("weir:pass wörd-1").toBase64()}`;
  assertEquals(receiver.requests.at(-1)?.headers["authorization"], basic);
  assertEquals(first["response"], '{"shown":"***","decoded":"weir:***","escaped":"weir%3A***"}');

  const changed = await edit(weir, id, { authentication: { type: "bearer", token: "a-token-of-ours" } });
  assertEquals(changed["authentication"], { type: "bearer" });
  const second = await attempted(http, id);
  assertEquals(receiver.requests.at(-1)?.headers["authorization"], "Bearer a-token-of-ours");
  assertEquals(second["response"], '{"shown":"***","decoded":"***","escaped":"***"}');

  const removed = await edit(weir, id, { authentication: null });
  assertEquals(removed["authentication"], undefined);
  await attempted(http, id);
  assertEquals(receiver.requests.at(-1)?.headers["authorization"], undefined);

  const { body: audit } = await api(http, "/audit");
  const shown = [
    JSON.stringify(audit),
    JSON.stringify(changed),
    await folder.storeText(),
    weir.log.join("\n"),
  ];
  for (const text of shown) {
    assertEquals([text.includes("pass w"), text.includes("a-token-of-ours")], [false, false]);
  }
  const fields = (audit["items"] as AnswerBody[]).map(({ details }) => (details as AnswerBody)["fields"]);
  assertEquals(fields.filter((one) => one !== undefined), [["authentication"], ["authentication"]]);
});

Deno.test("credentials: a receiver that requires a client certificate", async () => {
  await using certificates = await makeCertificates();
  await using receiver = await TlsReceiver.start(certificates);
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ WEBHOOK_CA_FILE: certificates.authority.certFile });
  const http = weir.httpAddress;
  const ca = await read(certificates.authority.certFile);
  const [one, other] = [await pemOf(certificates.client), await pemOf(certificates.otherClient)];
  const url = receiver.url;
  const made = await endpointOf(weir, { url: `${url}/one`, tls: { ...one, ca } });
  const { subject, expiresAt, authorities, ...rest } = made["tls"] as AnswerBody;
  assertEquals([subject, authorities, rest as object], ["CN=client", ["CN=authority"], {}]);
  assertMatch(String(expiresAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
  assertEquals((await attempted(http, made.id))["result"], "acknowledged");
  // It trusts the authorities of the setting.
  const third = await endpointOf(weir, { url: `${url}/third`, tls: one });
  assertEquals((third["tls"] as AnswerBody)["authorities"], undefined);
  assertEquals((await attempted(http, third.id))["result"], "acknowledged");
  const second = await endpointOf(weir, { url: `${url}/other`, tls: { ...other, ca } });
  const bare = await endpointOf(weir, { url, tls: { ca } });
  const untrusting = await endpointOf(weir, {
    url,
    tls: { ...one, ca: await read(certificates.otherAuthority.certFile) },
  });

  assertEquals((await attempted(http, second.id))["result"], "acknowledged");
  assertEquals((await attempted(http, made.id))["result"], "acknowledged");
  const refused = await attempted(http, bare.id);
  assertMatch(String(refused["error"]), /^the receiver requires a client certificate \(\w+\)$/);
  assertMatch(String(refused["why"]), /last attempt: the receiver requires a client certificate/);
  assertEquals([refused["errorKind"], (await attempted(http, untrusting.id))["error"]], [
    "tls",
    "the certificate is not issued by a trusted authority (SELF_SIGNED_CERT_IN_CHAIN)",
  ]);
  // Each endpoint has received every event since it is there, over connections that served several requests.
  await eventually([], async () => (await api(http, "/deliveries?state=attempting")).body["items"]);
  assertEquals(new Set(receiver.clients), new Set(["/one client", "/other other_client", "/third client"]));
  assertEquals([receiver.clients.length, receiver.sockets.size < 15], [15, true]);

  await edit(weir, third.id, { enabled: false });
  await edit(weir, made.id, { tls: { ...other, ca } });
  receiver.clients.length = 0;
  await edit(weir, second.id, { enabled: false });
  assertEquals((await attempted(http, made.id))["result"], "acknowledged");
  assertEquals(new Set(receiver.clients), new Set(["/one other_client"]));

  const { body: check } = await api(http, `/endpoints/${made.id}/check`, { method: "POST" });
  assertEquals(check["ok"], true, JSON.stringify(check));
  const stored = await folder.storeText();
  assertEquals([stored.includes("PRIVATE KEY"), stored.includes("BEGIN CERTIFICATE")], [false, false]);
});

Deno.test("credentials: certificates are checked before they are stored", async () => {
  await using certificates = await makeCertificates();
  const expired = await certificates.issue("old", { isExpired: true });
  const weak = await certificates.issue("weak", { rsaBits: 1_024 });
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const client = await pemOf(certificates.client);
  const other = await pemOf(certificates.otherClient);
  const url = "https://127.0.0.1:9/hook";
  const table: readonly [body: Readonly<Record<string, unknown>>, field: string, reason: RegExp][] = [
    [{ url, tls: {} }, "tls", /expected certificate and key, or ca/],
    [{ url, tls: { certificate: client.certificate } }, "tls.key", /together with its key/],
    [{ url, tls: { key: client.key } }, "tls", /expected certificate and key/],
    [{ url, tls: { ...client, key: other.key } }, "tls.key", /not the key of the first certificate/],
    [{ url, tls: { ...client, key: client.certificate } }, "tls.key", /holds no private key in PEM/],
    [{ url, tls: { ...client, certificate: client.key } }, "tls.certificate", /holds no certificate in PEM/],
    [{ url, tls: { ...client, certificate: "text" } }, "tls.certificate", /a text in PEM/],
    [{ url, tls: { ca: client.key } }, "tls.ca", /holds no certificate/],
    [{ url, tls: { ca: client.certificate.slice(0, -40) } }, "tls.ca", /certificate/],
    [{ url, tls: { ca: `${client.certificate}${"a".repeat(40_000)}` } }, "tls.ca", /at most 32768/],
    [{ url, tls: await pemOf(expired) }, "tls.certificate", /has not expired; CN=old expired at/],
    [{ url, tls: await pemOf(weak) }, "tls.key", /TLS does not take it .*RSA key of at least 2048 bits/],
    [{ url, tls: { ...client, subject: "CN=x" } }, "tls.subject", /unknown/],
    [{ url: "http://127.0.0.1:9/hook", tls: client }, "tls", /scheme https/],
  ];
  for (const [body, field, reason] of table) {
    const { status, body: problem } = await api(weir.httpAddress, "/endpoints", { body });
    assertEquals([status, problem["field"]], [422, field], JSON.stringify(problem));
    assertMatch(String(problem["detail"]), reason);
    assertEquals(JSON.stringify(problem).includes("PRIVATE"), false);
  }
  const { id } = await endpointOf(weir, { url, tls: client });
  const { status, body } = await api(weir.httpAddress, `/endpoints/${id}`, {
    method: "PATCH",
    body: { url: "http://127.0.0.1:9/hook" },
  });
  assertEquals([status, body["field"]], [422, "tls"]);
});

Deno.test("credentials: access tokens of a server, one for concurrent deliveries, and its errors in why", async () => {
  let issued = 0;
  let refuse = false;
  await using server = new EchoServer(({ headers }) => {
    if (refuse) {
      return Response.json({ error: "invalid_client", error_description: "s3cret" }, { status: 401 });
    }
    const isKnown = headers["authorization"] === `Basic ${btoa("weir:s3cret")}`;
    if (!isKnown) return Response.json({ error: "invalid_client" }, { status: 401 });
    return Response.json({
      access_token: `token-number-${++issued}`,
      token_type: "Bearer",
      expires_in: 3_600,
    });
  });
  const revoked = new Set<string>();
  await using receiver = new EchoServer(({ headers }) => {
    const { authorization = "" } = headers;
    return new Response(`got ${authorization}`, { status: revoked.has(authorization) ? 401 : 200 });
  });
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const http = weir.httpAddress;
  const client = { type: "oauth2", tokenUrl: `${server.origin}/token`, clientId: "weir" };
  const authentication = { ...client, clientSecret: "s3cret", scope: "hooks" };
  const { id, ...made } = await endpointOf(weir, { url: receiver.origin, authentication });
  assertEquals(made["authentication"], { ...client, scope: "hooks" });
  const { body: check } = await api(http, `/endpoints/${id}/check`, { method: "POST" });
  const stages = (check["stages"] as AnswerBody[]).map(({ stage, ok }) => `${stage} ${ok}`);
  assertEquals(stages.slice(-3), ["tls true", "token true", "sample true"]);
  const first = await Promise.all([1, 2, 3].map(() => attempted(http, id)));
  assertEquals(first.map(({ response }) => response), ["got Bearer ***", "got Bearer ***", "got Bearer ***"]);
  assertEquals([server.requests.length, String(new TextDecoder().decode(server.requests[0]?.body))], [
    1,
    "grant_type=client_credentials&scope=hooks",
  ]);

  // A new secret applies to the next attempt, and so does its error.
  await edit(weir, id, { authentication: { ...authentication, clientSecret: "wrong" } });
  const failed = await attempted(http, id);
  assertEquals([failed["errorKind"], failed["error"]], [
    "token",
    "no access token: the token server responded with 401 (invalid_client)",
  ]);
  assertMatch(String(failed["why"]), /last attempt: no access token: the token server responded with 401/);
  refuse = true;
  await edit(weir, id, { authentication });
  assertMatch(String((await attempted(http, id))["error"]), /responded with 401 \(invalid_client\)$/);
  refuse = false;
  await edit(weir, id, { authentication });
  assertEquals((await attempted(http, id))["result"], "acknowledged");

  // A token that was just issued is not renewed.
  revoked.add(`Bearer token-number-${issued}`);
  const rejected = await attempted(http, id);
  assertEquals([rejected["status"], rejected["response"]], [401, "got Bearer ***"]);
  const texts = [
    JSON.stringify((await api(http, "/audit")).body),
    await folder.storeText(),
    weir.log.join("\n"),
  ];
  assertEquals(texts.map((text) => /s3cret|token-number/.test(text)), [false, false, false]);
});

Deno.test("credentials: the token server is reached by the rules of receivers, and the header is set once", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve();
  const url = "https://127.0.0.1:9/hook";
  const oauth2 = { type: "oauth2", clientId: "a", clientSecret: "b" };
  const basic = { type: "basic", user: "a", password: "b" };
  const table: readonly [body: Readonly<Record<string, unknown>>, field: string, reason: RegExp][] = [
    [
      { authentication: { ...oauth2, tokenUrl: "https://10.0.0.1/" } },
      "authentication.tokenUrl",
      /public address/,
    ],
    [
      { authentication: { ...oauth2, tokenUrl: "http://8.8.8.8/" } },
      "authentication.tokenUrl",
      /expected https/,
    ],
    [
      { authentication: { ...oauth2, tokenUrl: "https://u:p@a.test/" } },
      "authentication.tokenUrl",
      /user name/,
    ],
    [{ authentication: oauth2 }, "authentication.tokenUrl", /oauth2 requires it/],
    [{ authentication: {} }, "authentication.type", /required/],
    [{ authentication: { ...basic, token: "t" } }, "authentication.token", /basic does not have it/],
    [{ authentication: { ...basic, user: "a:b" } }, "authentication.user", /without colons/],
    [{ authentication: { ...basic, password: "a\nb" } }, "authentication.password", /control/],
    [{ authentication: { type: "bearer", token: "a b" } }, "authentication.token", /without blanks/],
    [{ authentication: basic, headers: { AUTHORIZATION: "x" } }, "headers.AUTHORIZATION", /remove one/],
  ];
  for (const [body, field, reason] of table) {
    const { status, body: problem } = await api(weir.httpAddress, "/endpoints", { body: { url, ...body } });
    assertEquals([status, problem["field"]], [422, field], JSON.stringify(problem));
    assertMatch(String(problem["detail"]), reason);
  }
  const { id } = await endpointOf(weir, { url, headers: { Authorization: "x", "x-a": "b" } });
  const path = `/endpoints/${id}`;
  const patch = async (body: unknown) =>
    (await api(weir.httpAddress, path, { method: "PATCH", body })).body["field"];
  assertEquals(await patch({ authentication: basic }), "headers.Authorization");
  assertEquals(await patch({ authentication: basic, headers: { "x-a": "b" } }), undefined);
  assertEquals(await patch({ headers: { Authorization: "x" } }), "headers.Authorization");
  assertEquals(await patch({ authentication: null, headers: { Authorization: "x" } }), undefined);
});
