import { assert, assertEquals, assertThrows } from "#assert";
import {
  isPostgresAddress,
  parsePostgresAddress,
  type PostgresAddressFields,
  redactedAddress,
} from "../../../src/base/postgres_address.ts";

const USUAL: PostgresAddressFields = {
  hosts: [{ host: "db", port: 5432 }],
  user: "u",
  database: "u",
  sslMode: "prefer",
  rootCertFile: undefined,
  certFile: undefined,
  keyFile: undefined,
  connectTimeoutMs: undefined,
  applicationName: "weir",
  options: undefined,
  mustTakeWrites: true,
};

Deno.test("an address of PostgreSQL is read as libpq reads it", () => {
  const cases: readonly (readonly [string, Partial<PostgresAddressFields>, string | undefined])[] = [
    ["postgres://u@db", {}, undefined],
    ["postgresql://u:@db/", {}, undefined],
    ["postgres://u:p@db/d", { database: "d" }, "p"],
    ["postgres://u:a:b%40%2F%3f%25 c#@db/d%20e", { database: "d e" }, "a:b@/?% c#"],
    ["postgres://%C3%BC:p@db", { user: "ü", database: "ü" }, "p"],
    [
      "postgres://u:p@one:1,two:2,[::1]:3/d",
      { hosts: [place("one", 1), place("two", 2), place("::1", 3)], database: "d" },
      "p",
    ],
    ["postgres://u@one,two:2", { hosts: [place("one", 5432), place("two", 2)] }, undefined],
    ["postgres://u@one,two?port=7", { hosts: [place("one", 7), place("two", 7)] }, undefined],
    ["postgres://u@[fe80::1%25eth0]", { hosts: [place("fe80::1%25eth0", 5432)] }, undefined],
    ["postgres://u@/d?host=/run/pg", { hosts: [place("/run/pg", 5432)], database: "d" }, undefined],
    ["postgres://u@%2Frun%2Fpg:6432/d", { hosts: [place("/run/pg", 6432)], database: "d" }, undefined],
    ["postgres://?host=a,b&port=1,2&user=u&password=p%26", { hosts: [place("a", 1), place("b", 2)] }, "p&"],
    ["postgres://x:y@db/z?user=u&password=p&dbname=d", { database: "d" }, "p"],
    ["postgres://u@db?sslmode=disable", { sslMode: "disable" }, undefined],
    ["postgres://u@db?sslmode=allow", { sslMode: "allow" }, undefined],
    [
      "postgres://u@db?sslmode=require&sslrootcert=/ca.pem",
      { sslMode: "require", rootCertFile: "/ca.pem" },
      undefined,
    ],
    [
      "postgres://u@db?sslmode=verify-full&sslrootcert=system",
      { sslMode: "verify-full", rootCertFile: "system" },
      undefined,
    ],
    ["postgres://u@db?sslcert=c.pem&sslkey=k.pem", { certFile: "c.pem", keyFile: "k.pem" }, undefined],
    ["postgres://u@db?connect_timeout=3", { connectTimeoutMs: 3_000 }, undefined],
    ["postgres://u@db?application_name=my%20weir", { applicationName: "my weir" }, undefined],
    ["postgres://u@db?options=-c%20search_path%3Dweir", { options: "-c search_path=weir" }, undefined],
    ["postgres://u@db?target_session_attrs=any", { mustTakeWrites: false }, undefined],
    ["postgres://u@db?target_session_attrs=read-write", {}, undefined],
  ];
  for (const [text, fields, password] of cases) {
    const address = parsePostgresAddress(text);
    assertEquals([address.fields, address.password()], [{ ...USUAL, ...fields }, password], text);
  }
});

Deno.test("an address that cannot be is refused with its reason", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["data/weir.db", "expected postgres:// at the beginning"],
    ["postgres://db/d", "expected a user, as in postgres://user:password@host/database"],
    ["postgres://u:p@/d", "it names no host"],
    ["postgres://u:p@a,,b/d", "it names no host"],
    ["postgres://u:p@db:0/d", NO_PORT],
    ["postgres://u:p@db:65536", NO_PORT],
    ["postgres://u:p@::1/d", "its host cannot be read; put an IPv6 address in brackets"],
    ["postgres://u:p@s@db/d", "expected one @; write an @ in a password as %40"],
    ["postgres://u:%zz@db/d", "its password has an invalid percent-encoding (write a % as %25)"],
    ["postgres://u:%FF@db/d", "its password has an invalid percent-encoding (write a % as %25)"],
    ["postgres://u:p@db/a%00b", "its database has the character U+0000"],
    ["postgres://u@a,b,c?port=1,2", "it has 3 hosts and 2 ports"],
    ["postgres://u@db?sslmode=on", `its sslmode is none of ${MODES}`],
    ["postgres://u@db?sslmode=disable&sslmode=disable", 'it has the parameter "sslmode" twice'],
    ["postgres://u@db?sslmode", 'its parameter "sslmode" has no value'],
    ["postgres://u@db?gssencmode=disable", `its parameter "gssencmode" is none of ${KNOWN}`],
    ["postgres://u@db?%20=1", `its parameter is none of ${KNOWN}`],
    ["postgres://u@db?sslcert=c.pem", "sslcert and sslkey require each other"],
    ["postgres://u@db?sslmode=disable&sslrootcert=a", "sslmode=disable excludes sslrootcert"],
    [
      "postgres://u@db?sslmode=verify-ca",
      'sslmode=verify-ca requires sslrootcert, the file of an authority or "system"',
    ],
    [
      "postgres://u@db?sslmode=verify-ca&sslrootcert=system",
      "sslrootcert=system requires sslmode=verify-full, because those authorities issue certificates to everyone",
    ],
    ["postgres://u@/?host=/run/pg&sslmode=require", "sslmode has no effect on a unix socket"],
    ["postgres://u@db?connect_timeout=0", "expected a connect_timeout from 1 to 3600 seconds"],
    ["postgres://u@db?connect_timeout=1.5", "expected a connect_timeout from 1 to 3600 seconds"],
    ["postgres://u@db?target_session_attrs=standby", "its target_session_attrs is none of any, read-write"],
  ];
  for (const [text, state] of cases) {
    const { message } = assertThrows(() => parsePostgresAddress(text), text);
    assertEquals(message, `Cannot use the address of PostgreSQL: ${state}`);
  }
});

Deno.test("no error, text or inspection of an address holds a part of its password", () => {
  // Written without percent-encoding, so that parts of it come to stand where other things are expected.
  const passwords = ("hush hush:shush hush/shush hush?shush hush@shush hush%shush hush,shush " +
    "hush/shush?hush=shush hush#shush hush?shush&hush@hush hu/sh@hush?hush=1 hush[ hush]:hush 1/hush 1?hush")
    .split(" ");
  for (const password of [...passwords, "hush shush"]) {
    for (const rest of ["@db:5432/d", "@db/d?sslmode=require", "@db", "", "@db/d?hash=1", "@:/"]) {
      assert(!/s?hush/.test(shownOf(`postgres://user:${password}${rest}`)), `${password}${rest}`);
    }
  }
  assertEquals(
    shownOf("postgres://u:hush@a:1,[::1],%2Frun/d e?options=x"),
    "postgres://u@a:1,[::1]:5432,%2Frun:5432/d%20e",
  );
  assertEquals(isPostgresAddress("postgresql://u@db") && isPostgresAddress("postgres://"), true);
  assertEquals(isPostgresAddress("/data/postgres://u"), false);
});

const NO_PORT = "expected a port from 1 to 65535 (write a / or ? in a password as %2F or %3F)";
const MODES = "disable, allow, prefer, require, verify-ca, verify-full";
const KNOWN = "host, port, dbname, user, password, sslmode, sslrootcert, sslcert, sslkey, connect_timeout, " +
  "application_name, target_session_attrs, options";

function place(host: string, port: number): { host: string; port: number } {
  return { host, port };
}

/** All that can be seen of an address, or of the error that it is refused with. */
function shownOf(text: string): string {
  try {
    const address = parsePostgresAddress(text);
    const seen = [
      Deno.inspect(address, { showHidden: true, getters: true, depth: 9 }),
      JSON.stringify(address),
    ];
    assertEquals(seen.join("").includes("hush"), false);
    assertEquals(String(address), redactedAddress(address));
    return redactedAddress(address);
  } catch (error) {
    return error instanceof Error ? `${error.message} ${error.cause}` : "";
  }
}
