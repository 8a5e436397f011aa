import { assertEquals } from "#assert";
import {
  dialAddress,
  listenAddress,
  parseCidr,
  parseDialTarget,
  parseHost,
  parseHttpUrl,
  parsePort,
  parseProxyUrl,
  parseSrvName,
  parseUrlPath,
} from "../../../src/settings/address_parsers.ts";
import {
  duration,
  float,
  integer,
  listOf,
  mapBy,
  oneOf,
  parseAesKey,
  parseBearerToken,
  parseBoolean,
  parseFileMode,
  parseHeaderName,
  parsePath,
  parsePattern,
  parseText,
  parseVariableName,
} from "../../../src/settings/parsers.ts";
import type { Parser } from "../../../src/settings/setting.ts";

interface ParserTable {
  readonly parse: Parser<unknown>;
  readonly good: readonly (readonly [text: string, value: unknown])[];
  readonly bad: readonly string[];
  /** The problem of every bad text. */
  readonly expected: string;
}

const same = (...texts: string[]) => texts.map((text) => [text, text] as const);
const KEY = btoa("k".repeat(32));

const TABLES: Readonly<Record<string, ParserTable>> = {
  boolean: {
    parse: parseBoolean,
    good: [
      ...["1", "t", "T", "TRUE", "true", "True"].map((text) => [text, true] as const),
      ...["0", "f", "F", "FALSE", "false", "False"].map((text) => [text, false] as const),
    ],
    bad: ["yes", "on", "tRUE", "2", " true", "true "],
    expected: "true or false",
  },
  "integer from 0 to 10": {
    parse: integer({ min: 0, max: 10 }),
    good: [["0", 0], ["10", 10], ["0xA", 10], ["-0", 0]],
    bad: ["11", "-1", "1.0", "1e1", "010", "0x", "0b1", "ten", " 1", "1 ", "+1", "1_0"],
    expected: "an integer from 0 to 10",
  },
  "integer of 1 or more": {
    parse: integer({ min: 1 }),
    good: [["9007199254740991", 9_007_199_254_740_991]],
    bad: ["0", "9007199254740992", "0x20000000000000"],
    expected: "an integer of 1 or more",
  },
  "integer of at most 5": {
    parse: integer({ max: 5 }),
    good: [["-3", -3], ["-0x3", -3]],
    bad: ["6", "-"],
    expected: "an integer of at most 5",
  },
  "integer without bounds": { parse: integer(), good: [["-3", -3]], bad: ["x"], expected: "an integer" },
  "float from 0 to 1": {
    parse: float({ min: 0, max: 1 }),
    good: [["0", 0], ["1", 1], ["0.8", 0.8], [".5", 0.5], ["1.", 1], ["5e-1", 0.5]],
    bad: ["1.1", "-0.1", "NaN", "Infinity", "0,8", "80%", "0x1", " 0.5", "."],
    expected: "a number from 0 to 1",
  },
  "duration with bounds": {
    parse: duration({ min: "1ms", max: "1h" }),
    good: [["1ms", 1], ["10s", 10_000], ["1h", 3_600_000]],
    bad: ["0", "1us", "61m", "10", "-1s", "soon"],
    expected: "a duration from 1ms to 1h, such as 10s, 150us or 1m30s",
  },
  "duration without bounds": {
    parse: duration(),
    good: [["0", 0], ["150us", 0.15], ["30d", 2_592_000_000]],
    bad: ["10"],
    expected: "a duration, such as 10s, 150us or 1m30s",
  },
  list: {
    parse: listOf(parseText),
    good: [["", []], ["a", ["a"]], [" a , b,,c, ", ["a", "b", "c"]], [",", []]],
    bad: [],
    expected: "",
  },
  "list of ports": {
    parse: listOf(parsePort),
    good: [["1, 2", [1, 2]]],
    bad: ["1,x", "1;2"],
    expected: "a comma list whose items are each an integer from 0 to 65535",
  },
  "map by colon": {
    parse: mapBy(":"),
    good: [
      ["", new Map()],
      ["a:b", new Map([["a", "b"]])],
      [" a : b , c: ,", new Map([["a", "b"], ["c", ""]])],
      ["url:http://host:80/,t:1", new Map([["url", "http://host:80/"], ["t", "1"]])],
      ["__proto__:x", new Map([["__proto__", "x"]])],
    ],
    bad: ["a", ":b", "a:b,c", "a:1,a:2"],
    expected: "a comma list of key:value items, each key once",
  },
  "map by equals sign": {
    parse: mapBy("="),
    good: [["a=b=c,d=:", new Map([["a", "b=c"], ["d", ":"]])]],
    bad: ["a:b", "=b"],
    expected: "a comma list of key=value items, each key once",
  },
  "one of, exact": {
    parse: oneOf(["FILE", "GRPC_XDS_SOTW"]),
    good: same("FILE", "GRPC_XDS_SOTW"),
    bad: ["file", "FILE ", "XDS"],
    expected: "FILE or GRPC_XDS_SOTW",
  },
  "one of, any letter case, with an alias": {
    parse: oneOf(["info", "warning", "error"], { anyCase: true, aliases: { warn: "warning" } }),
    good: [["info", "info"], ["WARNING", "warning"], ["Warn", "warning"], ["eRRor", "error"]],
    bad: ["verbose", "constructor", "__proto__"],
    expected: "info, warning or error",
  },
  host: {
    parse: parseHost,
    good: [
      ...same("localhost", "0.0.0.0", "a-b.example.com", "my_host", "example.com.", "::", "::1", "fe80::1"),
      ...same("::ffff:10.0.0.1", "1a"),
      ["[::1]", "::1"],
    ],
    bad: [
      ...["", "a b", "a:80", "http://a", "256.0.0.1", "1.2.3", "-a", "a..b", "[localhost]", "[::1", ":::"],
      ...["1::2::3", "a/b", "x".repeat(254)],
    ],
    expected: "a host name or an IP address",
  },
  port: {
    parse: parsePort,
    good: [["0", 0], ["8081", 8081], ["65535", 65_535]],
    bad: ["80a1", "65536", "-1", "", "8081 ", "1.5", "1e3", "0x50"],
    expected: "an integer from 0 to 65535",
  },
  "address to dial": {
    parse: dialAddress,
    good: [
      ["localhost:6379", { host: "localhost", port: 6379 }],
      ["10.0.0.1:1", { host: "10.0.0.1", port: 1 }],
      ["[::1]:6379", { host: "::1", port: 6379 }],
    ],
    bad: [
      ...[
        "localhost",
        "localhost:",
        ":6379",
        "localhost:0",
        "::1:6379",
        "[::1]",
        "[a]:1",
        "a:b:1",
        "a:65536",
      ],
      "/run/s",
    ],
    expected: "host:port or [IPv6 address]:port",
  },
  "address to listen on": {
    parse: listenAddress,
    good: [
      [":9090", { host: "0.0.0.0", port: 9090 }],
      ["127.0.0.1:0", { host: "127.0.0.1", port: 0 }],
      ["[::]:9090", { host: "::", port: 9090 }],
    ],
    bad: ["9090", "localhost", ":", "::9090"],
    expected: "host:port, [IPv6 address]:port or :port",
  },
  "gRPC target": {
    parse: parseDialTarget,
    good: same("localhost:18000", "dns:///xds.example.com:1", "dns:a:1", "[::1]:18000", "unix:/run/xds.sock"),
    bad: ["localhost", "http://localhost:18000", "unix:"],
    expected: "host:port, dns:///host:port or unix:path",
  },
  "SRV name": {
    parse: parseSrvName,
    good: same("_mc._tcp.example.com"),
    bad: ["mc.example.com", "_mc.example.com"],
    expected: "an SRV name such as _mc._tcp.example.com",
  },
  "address range": {
    parse: parseCidr,
    good: same("10.0.0.0/8", "fd00::/8", "::1/128", "0.0.0.0/0"),
    bad: ["10.0.0.0", "10.0.0.0/33", "::1/129", "host/8", "10.0.0/8", "/8"],
    expected: "an address range such as 10.0.0.0/8 or fd00::/8",
  },
  "path of a URL": {
    parse: parseUrlPath,
    good: same("/", "/metrics", "/a/b"),
    bad: ["metrics", "/a?b", "/a b", ""],
    expected: "a path that starts with /",
  },
  URL: {
    parse: parseHttpUrl,
    good: same("http://localhost:8080", "https://user:password@proxy.example.com/"),
    bad: ["localhost:8080", "ftp://a", "http://", "http:///a", "http://a:b"],
    expected: "a URL that starts with http:// or https://",
  },
  "URL of a proxy": {
    parse: parseProxyUrl,
    good: same("http://proxy:3128", "http://user:password@proxy.example.com/"),
    bad: ["https://proxy:3128", "proxy:3128", "http://"],
    expected: "a URL that starts with http://",
  },
  "file permissions": {
    parse: parseFileMode,
    good: [["660", 0o660], ["0660", 0o660], ["0o777", 0o777], ["000", 0]],
    bad: ["0888", "66", "1660", "0x1b0", "rw-rw----", "-660"],
    expected: "file permissions in octal, such as 0660",
  },
  "header name": {
    parse: parseHeaderName,
    good: same("RateLimit-Limit", "X-L", "x!#$%&'*+.^_`|~9"),
    bad: ["", "X L", "X:L", "X\n", "Ü", "X,Y"],
    expected: "a header name of letters, digits and !#$%&'*+-.^_`|~",
  },
  "variable name": {
    parse: parseVariableName,
    good: same("CRM_TOKEN", "_a1"),
    bad: ["1A", "A-B", "A=B"],
    expected: "the name of an environment variable",
  },
  "encryption key": {
    parse: parseAesKey,
    good: same(KEY),
    bad: ["", btoa("short"), "not base64!", btoa("k".repeat(33))],
    expected: "32 bytes in base64",
  },
  path: {
    parse: parsePath,
    good: same("/run/weir.sock", "relative/file", "C:\\x"),
    bad: ["", "a\0b"],
    expected: "the path of a file or folder",
  },
  "bearer token": {
    parse: parseBearerToken,
    good: same("s3cret", "a/b+c~d==", "changed-every-day", "the-secret"),
    bad: ["", "two words", " s3cret", "s3cret\n", "sécret"],
    expected: "visible ASCII characters without a space",
  },
  "placeholder of a token": {
    parse: parseBearerToken,
    good: [],
    bad: [
      ...[
        "change-me",
        "CHANGE_ME",
        "changeme",
        "change-me-too",
        "replace-this",
        "your-token-here",
        "my-token",
      ],
      ...[
        "secret",
        "Password",
        "example",
        "<token>",
        "${ADMIN_TOKEN}",
        "xxxxxxxx",
        "***",
        "0123456789abcdef",
      ],
    ],
    expected: 'a random token, such as "openssl rand -hex 32" prints, instead of a placeholder',
  },
  text: { parse: parseText, good: same("", " anything, at all "), bad: [], expected: "" },
};

for (const [name, { parse, good, bad, expected }] of Object.entries(TABLES)) {
  for (const [text, value] of good) {
    Deno.test(`${name}: ${JSON.stringify(text)} is good`, () => assertEquals(parse(text), { value }));
  }
  for (const text of bad) {
    Deno.test(`${name}: ${JSON.stringify(text)} is bad`, () => assertEquals(parse(text), { expected }));
  }
}

/** The linter does not know flags of a part of a pattern. */
const IN_ANY_CASE = "^(?i:A)(?<one>[^\\n])$";
const PATTERNS: readonly [text: string, parsed: ReturnType<typeof parsePattern>][] = [
  ["(?i)^A(?P<one>.)$", { value: new RegExp(IN_ANY_CASE, "u") }],
  ["a(?=b)", {
    value: /a(?=b)/u,
    warning: "Go refuses this regular expression, so it is read as one of JavaScript: " +
      "invalid or unsupported Perl syntax at character 2",
  }],
  ["(", { expected: "a regular expression: missing closing ) at character 1" }],
  ["[", { expected: "a regular expression: missing closing ] at character 1" }],
  ["a(?x)a", { expected: "a regular expression: invalid or unsupported Perl syntax at character 2" }],
];

for (const [text, parsed] of PATTERNS) {
  Deno.test(`regular expression: ${text}`, () => assertEquals(parsePattern(text), parsed));
}
