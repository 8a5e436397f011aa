import { assertEquals } from "#assert";
import { Cidrs } from "../../../../src/net/outbound/address_ranges.ts";
import { urlProblem, urlShapeProblem } from "../../../../src/net/outbound/url_problem.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

const NAMES: Readonly<Record<string, readonly string[]>> = {
  "public.test": ["8.8.8.8", "2606:4700::1"],
  "private.test": ["10.0.0.1", "fd00::1"],
  "both.test": ["10.0.0.1", "8.8.8.8"],
  "open.test": ["127.0.0.1"],
  "half.test": ["127.0.0.1", "8.8.8.8"],
};

const HTTPS_WANTED = "expected https: http is only allowed to addresses in WEBHOOK_ALLOW_CIDRS";
const A_URL = 'expected a URL such as "https://host/path" of at most 2048 characters without spaces';

/** URLs of endpoints, and why they may not be. */
const URLS: Readonly<Record<string, string | undefined>> = {
  "https://public.test/a?b": undefined,
  "https://PUBLIC.test:8443": undefined,
  "https://both.test/": undefined,
  "https://unknown.test/": undefined,
  "https://open.test/": undefined,
  "https://8.8.8.8/": undefined,
  "https://private.test/":
    "expected a public address or one in WEBHOOK_ALLOW_CIDRS: 10.0.0.1 is private (10.0.0.0/8)",
  "https://[::ffff:10.0.0.1]/":
    "expected a public address or one in WEBHOOK_ALLOW_CIDRS: ::ffff:a00:1 is IPv4-mapped for 10.0.0.1, which is private (10.0.0.0/8)",
  "https://0x7f.1/": undefined,
  "https://169.254.169.254/latest":
    "expected a public address or one in WEBHOOK_ALLOW_CIDRS: 169.254.169.254 is link-local (169.254.0.0/16)",
  "http://open.test/": undefined,
  "http://127.1:81/": undefined,
  "http://public.test/": HTTPS_WANTED,
  "http://half.test/": HTTPS_WANTED,
  "http://unknown.test/": `${HTTPS_WANTED}, and the name of the host cannot be resolved`,
  "ftp://public.test/": "expected a URL with the scheme https",
  "javascript:alert(1)": "expected a URL with the scheme https",
  "https://user@public.test/": "expected a URL without user name and password",
  "https://:secret@public.test/": "expected a URL without user name and password",
  "https://@public.test/": "expected a URL without user name and password",
  "https:/:@public.test/": "expected a URL without user name and password",
  "https://public.test\\@open.test/": "expected a URL without a backslash",
  "https:\\\\public.test/": "expected a URL without a backslash",
  "https://public.test/@name?to=@name": undefined,
  "https://public.test:0/": "expected a URL with another port",
  "/hook": A_URL,
  "": A_URL,
  "https://": A_URL,
  "https://public.test:99999/": A_URL,
  [`https://public.test/${"x".repeat(2_048)}`]: A_URL,
};

Deno.test("an endpoint's URL is https to a public address, or to one that was opened", async () => {
  const lookup = (name: string) => {
    const found = NAMES[name];
    return found === undefined ? Promise.reject(new Error("secret")) : Promise.resolve(found);
  };
  const options = { clock: new FakeClock(), lookupTimeoutMs: 1_000, lookup };
  const allow = new Cidrs(["127.0.0.1/32"]);
  for (const [url, expected] of Object.entries(URLS)) {
    assertEquals(await urlProblem(url, allow, options), expected, url);
  }
  const isProxied = { ...options, isProxied: true };
  assertEquals(await urlProblem("https://private.test/", allow, isProxied), undefined);
  assertEquals(await urlProblem("http://private.test/", allow, isProxied), HTTPS_WANTED);
  assertEquals(
    await urlProblem("ftp://private.test/", allow, isProxied),
    "expected a URL with the scheme https",
  );
});

Deno.test("a URL is as it is dialled", () => {
  const bad = [
    " https://a.test/",
    "https://a.test/ ",
    "https://a\t.test/",
    "https://a.test/\nx: y",
    "https://a.test/\0",
  ];
  for (const url of bad) assertEquals(urlShapeProblem(url), A_URL, JSON.stringify(url));
  for (const url of ["https://a.test/a%20b?c=d", "HTTPS://A.TEST"]) {
    assertEquals(urlShapeProblem(url), undefined);
  }
});
