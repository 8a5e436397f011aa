import { assertEquals, assertThrows } from "#assert";
import { type KvAddressOptions, type KvEndpoints, parseKvAddress } from "../../../../src/cache/kv/address.ts";

const NO_LOGIN = {
  username: undefined,
  password: undefined,
  sentinelLogin: { username: undefined, password: undefined },
  database: 0,
  tls: false,
};

const LOGIN = { username: "user", password: "pass" };
const EXAMPLE = { target: { host: "kv.example", port: 6390 }, text: "kv.example:6390" };

interface AddressCase {
  readonly type: KvEndpoints["kind"];
  readonly url: string;
  readonly options?: KvAddressOptions;
  /** Differences from an address without a login. */
  readonly expected: Record<string, unknown>;
}

const single = (url: string, expected: Record<string, unknown>, options?: KvAddressOptions): AddressCase => ({
  type: "single",
  url,
  expected: { text: url, ...expected },
  ...(options === undefined ? {} : { options }),
});

const CASES: readonly AddressCase[] = [
  single("localhost:6379", { target: { host: "localhost", port: 6379 } }),
  single("[::1]:6380", { target: { host: "::1", port: 6380 } }),
  single("h:1", { target: { host: "h", port: 1 }, tls: true }, { tls: true }),
  single("/run/kv.sock", { target: { path: "/run/kv.sock" } }),
  single("unix:///run/kv.sock", { target: { path: "/run/kv.sock" }, text: "/run/kv.sock" }),
  single("unix:///kv.sock", { target: { path: "/kv.sock" }, text: "/kv.sock" }, { socketType: "unix" }),
  single("kv.sock", { target: { path: "kv.sock" } }, { socketType: "unix" }),
  single("redis://user:pass@kv.example:6390/3", { ...EXAMPLE, ...LOGIN, database: 3 }),
  single("redis://kv.example:6390", EXAMPLE),
  single("redis://kv.example", { target: { host: "kv.example", port: 6379 }, text: "kv.example:6379" }),
  single("redis://[::1]:7", { target: { host: "::1", port: 7 }, text: "[::1]:7" }),
  single("rediss://user:pass@kv.example:6390", { ...EXAMPLE, ...LOGIN, tls: true }),
  single("redis://kv.example:6390", { ...EXAMPLE, tls: true }, { tls: true }),
  {
    type: "sentinel",
    url: "main, a:1 ,[::1]:2,",
    options: { auth: "user:pass", sentinelAuth: "watch:wo:rd", tls: true },
    expected: {
      ...LOGIN,
      master: "main",
      sentinels: [{ host: "a", port: 1 }, { host: "::1", port: 2 }],
      sentinelLogin: { username: "watch", password: "wo:rd" },
      text: "main,a:1,[::1]:2",
      tls: true,
    },
  },
  {
    type: "cluster",
    url: "a:1,[::1]:2",
    options: { auth: "pass", sentinelAuth: "unread", socketType: "unix" },
    expected: {
      password: "pass",
      nodes: [{ host: "a", port: 1 }, { host: "::1", port: 2 }],
      text: "a:1,[::1]:2",
    },
  },
];

for (const { type, url, options, expected } of CASES) {
  Deno.test(`kv address: ${type} ${url} ${JSON.stringify(options ?? {})}`, () => {
    assertEquals<unknown>({ ...parseKvAddress(type, url, options) }, {
      ...NO_LOGIN,
      kind: type,
      ...expected,
    });
  });
}

Deno.test("kv address: who logs in", () => {
  const login = (url: string, auth?: string) => {
    const { username, password, database } = parseKvAddress("single", url, { auth });
    return [username, password, database];
  };
  assertEquals(login("redis://u%40x:p%3Aq@h:1/3"), ["u@x", "p:q", 3]);
  assertEquals(login("redis://:p@h:1"), [undefined, "p", 0]);
  assertEquals(login("redis://u:p@h:1/3", "other"), [undefined, "other", 3]);
  assertEquals(login("h:1", "user:pass:word"), ["user", "pass:word", 0]);
  assertEquals(login("h:1", ":pass:word"), [undefined, "pass:word", 0]);
  assertEquals(login("h:1"), [undefined, undefined, 0]);
});

Deno.test("kv address: the login of a sentinel in its URL is that of all, unless another is set", () => {
  const read = (sentinelAuth?: string) => {
    const address = parseKvAddress("sentinel", "main,redis://u:a%20b@h:1,i:2,redis://[::1]", {
      sentinelAuth,
    });
    return address.kind === "sentinel" &&
      [address.text, address.sentinels, address.sentinelLogin, address.password];
  };
  const sentinels = [{ host: "h", port: 1 }, { host: "i", port: 2 }, { host: "::1", port: 6379 }];
  const text = "main,h:1,i:2,[::1]:6379";
  assertEquals(read(), [text, sentinels, { username: "u", password: "a b" }, undefined]);
  assertEquals(read("other"), [text, sentinels, { username: undefined, password: "other" }, undefined]);
});

const PLAIN = "expected host:port, [IPv6 address]:port or the path of a unix socket";
const HIDDEN = "Invalid KV_URL (value not shown): expected";
const URL_FORM = `${HIDDEN} redis://user:password@host:port/database`;
const SENTINEL =
  `${HIDDEN} the name of the primary and at least one sentinel, such as name,host:port,host:port`;
const CLUSTER = `${HIDDEN} a comma-separated list of host:port or [IPv6 address]:port`;

const BAD: readonly [type: KvEndpoints["kind"], url: string, message: string][] = [
  ["single", "localhost", `Invalid KV_URL "localhost": ${PLAIN}`],
  ["single", "u:secret@h:1", `Invalid KV_URL (value not shown): ${PLAIN}`],
  ["single", "secret@h:1", `Invalid KV_URL (value not shown): ${PLAIN}`],
  ["single", "h:0", `Invalid KV_URL "h:0": ${PLAIN}`],
  ["single", "h:65536", `Invalid KV_URL "h:65536": ${PLAIN}`],
  ["single", "redis://u:secret@h:1/x", URL_FORM],
  ["single", "http://u:secret@h", URL_FORM],
  ["sentinel", "main", SENTINEL],
  ["sentinel", "a:1,b:2", SENTINEL],
  ["sentinel", "main,b", SENTINEL],
  ["sentinel", "redis://:secret@a:1,b:2", SENTINEL],
  ["cluster", ",", CLUSTER],
  ["cluster", "a:1,user:secret@b:2", CLUSTER],
  ["cluster", "redis://:secret@a:1", CLUSTER],
];

for (const [type, url, message] of BAD) {
  Deno.test(`kv address: ${type} "${url}" cannot be used, and no password is shown`, () => {
    assertEquals(assertThrows(() => parseKvAddress(type, url)).message, message);
    const second = assertThrows(() => parseKvAddress(type, url, { setting: "KV_PERSECOND_URL" }));
    assertEquals(second.message, message.replace("KV_URL", "KV_PERSECOND_URL"));
  });
}
