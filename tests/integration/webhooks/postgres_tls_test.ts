import { assert, assertEquals, assertMatch } from "#assert";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { handled } from "../../harness/handled.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import type { PostgresTls } from "../../harness/postgres_folder.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { connectTo, duringFile, refusal, serverOfRun, usePostgres } from "../../harness/postgres_fixture.ts";
import { needing, toolAvailable } from "../../harness/tools.ts";

const known = duringFile(async () => toolAvailable("openssl") ? await makeCertificates() : undefined);
usePostgres();
const tls = needing("postgres", "openssl");
const openssl = needing("openssl");

/** Parameters of the address, and whether the connection is encrypted; or what is wrong with it. */
type Case = readonly [parameters: string, expected: boolean | RegExp];

const UNKNOWN =
  /^busy Cannot connect to PostgreSQL at "127\.0\.0\.1:\d+": unable to verify the first certificate: it is not issued by a trusted authority$/;
const NO_ENTRY = /^busy .*no pg_hba\.conf entry.*no encryption \(28000\)$/;

tls.test("each sslmode encrypts and checks what libpq's does", async () => {
  const certificates = known();
  const root = `sslrootcert=${certificates.authority.certFile}`;
  const other = `sslrootcert=${certificates.otherAuthority.certFile}`;
  const right: readonly Case[] = [
    ["sslmode=disable", NO_ENTRY],
    ["sslmode=allow", true],
    ["sslmode=prefer", true],
    ["", true],
    ["sslmode=require", true],
    [`sslmode=require&${root}`, true],
    [`sslmode=require&${other}`, UNKNOWN],
    // The check fails, and then, as libpq has it, the server does not want it without encryption.
    [`sslmode=prefer&${other}`, NO_ENTRY],
    [`sslmode=verify-ca&${root}`, true],
    [`sslmode=verify-ca&${other}`, UNKNOWN],
    [`sslmode=verify-full&${root}`, true],
    [`sslmode=verify-full&${other}`, UNKNOWN],
    ["sslmode=verify-full&sslrootcert=system", UNKNOWN],
    ["sslmode=verify-ca&sslrootcert=/nowhere.pem", /^busy .*Cannot use sslrootcert "\/nowhere\.pem": /],
  ];
  await checkAll(certificates, { ...certificates.server }, right);
  await checkAll(certificates, { ...certificates.elsewhere }, [
    ["sslmode=require", true],
    [`sslmode=require&${root}`, true],
    [`sslmode=verify-ca&${root}`, true],
    [`sslmode=verify-full&${root}`, /^busy .*Hostname\/IP does not match/],
  ]);
});

tls.test("a client shows its certificate to a server that asks for one", async () => {
  const certificates = known();
  const { authority, client, otherClient, server } = certificates;
  const full = `sslmode=verify-full&sslrootcert=${authority.certFile}`;
  const pair = (files: typeof client) => `sslcert=${files.certFile}&sslkey=${files.keyFile}`;
  await checkAll(certificates, { ...server, clientAuthorityFile: authority.certFile }, [
    [full, /^busy .*requires a valid client certificate \(28000\)$/],
    [`${full}&${pair(client)}`, true],
    [`sslmode=require&${pair(client)}`, true],
    // The end of the connection may overtake the alert.
    [`${full}&${pair(otherClient)}`, /^busy .*(?:alert|reset|closed|terminated)/i],
    [`${full}&sslcert=${client.certFile}&sslkey=${otherClient.keyFile}`, /^busy .*sslkey/],
    [`${full}&sslcert=${client.certFile}&sslkey=${client.certFile}`, /^busy .*sslkey/],
  ]);
});

tls.test("a server without TLS is used by those who do not insist", async () => {
  const certificates = known();
  await checkAll(certificates, undefined, [
    ["sslmode=disable", false],
    ["sslmode=allow", false],
    ["sslmode=prefer", false],
    ["sslmode=require", /^busy .*does not support SSL/],
    [`sslmode=verify-full&sslrootcert=${certificates.authority.certFile}`, /^busy .*does not support SSL/],
  ]);
});

tls.test("certificates are read anew for each connection, and unusable ones keep their last good content", async () => {
  const certificates = known();
  await using server = await PostgresServer.start({ tls: certificates.server });
  const file = `${certificates.folder}/authorities.pem`;
  const url = server.url("postgres", `sslmode=verify-full&sslrootcert=${file}`);
  await Deno.copyFile(certificates.otherAuthority.certFile, file);
  assertMatch(String(await isEncrypted(url)), UNKNOWN);
  const both = [certificates.otherAuthority, certificates.authority].map(({ certFile }) => certFile);
  await Deno.writeTextFile(
    file,
    (await Promise.all(both.map((path) => Deno.readTextFile(path)))).join("\n"),
  );
  assertEquals(await isEncrypted(url), true);
  await Deno.truncate(file);
  assertEquals(await isEncrypted(url), true);
  await Deno.remove(file);
  assertEquals(await isEncrypted(url), true);
  await Deno.copyFile(certificates.otherAuthority.certFile, file);
  assertMatch(String(await isEncrypted(url)), UNKNOWN);
});

Deno.test("an answer in the open before the handshake is not taken for one that was encrypted", async () => {
  // As somebody would do it who sits between here and the server.
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"));
  });
  const url = `postgres://u:p@127.0.0.1:${await listening(listener)}/d?sslmode=require`;
  assertMatch(String(await isEncrypted(url)), /^busy /);
  await new Promise((resolve) => listener.close(resolve));
});

openssl.test("nonsense that was encrypted is only an error, too", async () => {
  const certificates = known();
  const [cert, key] = await Promise.all(
    [certificates.server.certFile, certificates.server.keyFile].map((file) => Deno.readTextFile(file)),
  );
  assert(cert !== undefined && key !== undefined);
  const inner = createTlsServer({ cert, key }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("R\0\0\0\x08\0\0\0\x07"));
  });
  const port = await listening(inner);
  // The request for encryption is answered before the two are brought together.
  const outer = createServer((client) => {
    client.on("error", () => {});
    client.once("data", () => {
      const upstream = connect(port, "127.0.0.1");
      upstream.on("error", () => {});
      client.write("S");
      client.pipe(upstream).pipe(client);
    });
  });
  const found = await isEncrypted(`postgres://u:p@127.0.0.1:${await listening(outer)}/d?sslmode=require`);
  assertMatch(String(found), /^busy .*Unknown authenticationOk message type 7$/);
  for (const server of [outer, inner]) await new Promise((resolve) => server.close(resolve));
});

async function checkAll(
  { folder }: Certificates,
  tls: PostgresTls | undefined,
  cases: readonly Case[],
): Promise<void> {
  await using own = tls === undefined ? undefined : await PostgresServer.start({ tls });
  const server = own ?? serverOfRun();
  for (const [parameters, expected] of cases) {
    const found = await isEncrypted(server.url("postgres", parameters));
    if (expected instanceof RegExp) assertMatch(String(found), expected, parameters.replaceAll(folder, ""));
    else assertEquals(found, expected, `${parameters.replaceAll(folder, "")}: ${found}`);
  }
}

/** True if the connection is encrypted, or why there is none. */
async function isEncrypted(url: string): Promise<boolean | string> {
  const opening = handled(connectTo(url));
  if ((await Promise.allSettled([opening]))[0]?.status === "rejected") return await refusal(opening);
  await using connection = await opening;
  const { rows } = await connection.query(
    "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    [],
    "rows",
  );
  return rows[0]?.["ssl"] === 1;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
