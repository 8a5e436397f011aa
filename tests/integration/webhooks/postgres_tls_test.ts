import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { connect, createServer, type Server } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { systemClock } from "../../../src/base/clock.ts";
import { parsePostgresAddress } from "../../../src/base/postgres_address.ts";
import { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";
import { StoreError } from "../../../src/webhooks/store/store.ts";
import { type Certificates, makeCertificates } from "../../harness/certificates.ts";
import type { PostgresTls } from "../../harness/postgres_folder.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { duringFile, sharedPostgres } from "../../harness/postgres_fixture.ts";
import { needs, toolAvailable } from "../../harness/tools.ts";

const known = duringFile(async () => toolAvailable("openssl") ? await makeCertificates() : undefined);
const shared = sharedPostgres();

/** Parameters of the address, and whether the connection is encrypted; or what is wrong with it. */
type Case = readonly [parameters: string, expected: boolean | RegExp];

const UNKNOWN =
  /^busy Cannot connect to PostgreSQL at "127\.0\.0\.1:\d+": unable to verify the first certificate: it is not issued by a trusted authority$/;
const NO_ENTRY = /^busy .*no pg_hba\.conf entry.*no encryption \(28000\)$/;

Deno.test({
  ...needs(["postgres", "openssl"], "each sslmode encrypts and checks what libpq's does"),
  async fn() {
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
  },
});

Deno.test({
  ...needs(["postgres", "openssl"], "a client shows its certificate to a server that asks for one"),
  async fn() {
    const certificates = known();
    const { authority, client, otherClient, server } = certificates;
    const full = `sslmode=verify-full&sslrootcert=${authority.certFile}`;
    const pair = (files: typeof client) => `sslcert=${files.certFile}&sslkey=${files.keyFile}`;
    await checkAll(certificates, { ...server, clientAuthorityFile: authority.certFile }, [
      [full, /^busy .*requires a valid client certificate \(28000\)$/],
      [`${full}&${pair(client)}`, true],
      [`sslmode=require&${pair(client)}`, true],
      [`${full}&${pair(otherClient)}`, /^busy .*alert/i],
      [`${full}&sslcert=${client.certFile}&sslkey=${otherClient.keyFile}`, /^busy .*sslkey/],
      [`${full}&sslcert=${client.certFile}&sslkey=${client.certFile}`, /^busy .*sslkey/],
    ]);
  },
});

Deno.test({
  ...needs(["postgres", "openssl"], "a server without TLS is used by those who do not insist"),
  async fn() {
    const certificates = known();
    await checkAll(certificates, undefined, [
      ["sslmode=disable", false],
      ["sslmode=allow", false],
      ["sslmode=prefer", false],
      ["sslmode=require", /^busy .*does not support SSL/],
      [`sslmode=verify-full&sslrootcert=${certificates.authority.certFile}`, /^busy .*does not support SSL/],
    ]);
  },
});

Deno.test({
  ...needs(
    ["postgres", "openssl"],
    "certificates are read anew for each connection, and unusable ones keep their last good content",
  ),
  async fn() {
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
  },
});

Deno.test("an answer in the open before the handshake is not taken for one that was encrypted", async () => {
  // As somebody would do it who sits between here and the server.
  const listener = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const place = listener.address();
  assert(typeof place === "object" && place !== null);
  assertMatch(
    String(await isEncrypted(`postgres://u:p@127.0.0.1:${place.port}/d?sslmode=require`)),
    /^busy /,
  );
  await new Promise((resolve) => listener.close(resolve));
});

Deno.test({
  ...needs(["openssl"], "nonsense that was encrypted is only an error, too"),
  async fn() {
    const certificates = known();
    const [cert, key] = await Promise.all(
      [certificates.server.certFile, certificates.server.keyFile].map((file) => Deno.readTextFile(file)),
    );
    assert(cert !== undefined && key !== undefined);
    const inner = createTlsServer({ cert, key }, (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.write("R\0\0\0\x08\0\0\0\x07"));
    });
    await new Promise<void>((resolve) => inner.listen(0, "127.0.0.1", resolve));
    // The request for encryption is answered before the two are brought together.
    const outer = createServer((client) => {
      client.on("error", () => {});
      client.once("data", () => {
        const upstream = connect(portOf(inner), "127.0.0.1");
        upstream.on("error", () => {});
        client.write("S");
        client.pipe(upstream).pipe(client);
      });
    });
    await new Promise<void>((resolve) => outer.listen(0, "127.0.0.1", resolve));
    const found = await isEncrypted(`postgres://u:p@127.0.0.1:${portOf(outer)}/d?sslmode=require`);
    assertMatch(String(found), /^busy .*Unknown authenticationOk message type 7$/);
    for (const server of [outer, inner]) await new Promise((resolve) => server.close(resolve));
  },
});

async function checkAll(
  { folder }: Certificates,
  tls: PostgresTls | undefined,
  cases: readonly Case[],
): Promise<void> {
  await using own = tls === undefined ? undefined : await PostgresServer.start({ tls });
  const server = own ?? shared();
  for (const [parameters, expected] of cases) {
    const found = await isEncrypted(server.url("postgres", parameters));
    if (expected instanceof RegExp) assertMatch(String(found), expected, parameters.replaceAll(folder, ""));
    else assertEquals(found, expected, `${parameters.replaceAll(folder, "")}: ${found}`);
  }
}

/** Whether the connection is encrypted, or why there is none. */
async function isEncrypted(url: string): Promise<boolean | string> {
  const address = parsePostgresAddress(url);
  const [host] = address.fields.hosts;
  assert(host !== undefined);
  const opening = PostgresConnection.open(address, host, {
    clock: systemClock,
    connectTimeoutMs: 60_000,
    statementTimeoutMs: 60_000,
    lockTimeoutMs: 60_000,
  });
  let connection: PostgresConnection;
  try {
    connection = await opening;
  } catch {
    const error = await assertRejects(() => opening);
    assert(error instanceof StoreError, error.stack);
    return `${error.code} ${error.message}`;
  }
  const sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
  const { rows } = await connection.query(sql, [], "rows");
  await connection.close();
  return rows[0]?.["ssl"] === 1;
}

function portOf(server: Server): number {
  const place = server.address();
  assert(typeof place === "object" && place !== null);
  return place.port;
}
