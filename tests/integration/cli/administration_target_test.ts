import { assert, assertEquals } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { PlayedAdministration, ran, TOKEN, words } from "../../harness/administration_fixture.ts";

const SECRET = "secret-in-a-file-0123456789-0123456789";
const PAGE = { body: '{"items":[]}' };

/** Gives its own folder; `data/admin-token` holds what is given. */
async function inFolder(kept: string | undefined, run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    if (kept !== undefined) {
      await Deno.mkdir(`${folder}/data`);
      await Deno.writeTextFile(`${folder}/data/admin-token`, kept);
    }
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("the token of ADMIN_TOKEN goes before the one that is kept", async () => {
  await inFolder("kept", async (folder) => {
    await using service = new PlayedAdministration(PAGE);
    await service.ran("audit", { folder });
    assertEquals(service.got[0]?.headers["authorization"], `Bearer ${TOKEN}`);
  });
});

Deno.test("the token of --token-file goes before ADMIN_TOKEN, without the line break at its end", async () => {
  await inFolder(undefined, async (folder) => {
    await Deno.writeTextFile(`${folder}/token`, `${SECRET}\n`);
    await using service = new PlayedAdministration(PAGE);
    await service.ran(`audit --token-file ${folder}/token`);
    assertEquals(service.got[0]?.headers["authorization"], `Bearer ${SECRET}`);
  });
});

for (const host of ["127.0.0.1", "localhost"]) {
  Deno.test(`the token that is kept is used for ${host}`, async () => {
    await inFolder(`${SECRET}\n`, async (folder) => {
      await using service = new PlayedAdministration(PAGE);
      const environment = { WEIR_URL: service.url.replace("127.0.0.1", host), ADMIN_TOKEN: "" };
      assertEquals((await ran("audit", { environment, folder })).code, 0);
      assertEquals(service.got[0]?.headers["authorization"], `Bearer ${SECRET}`);
    });
  });
}

Deno.test("--url goes before WEIR_URL, and its path stays", async () => {
  await using service = new PlayedAdministration(PAGE);
  const environment = { WEIR_URL: "http://127.0.0.1:1" };
  await service.ran(`audit --url ${service.url}/behind/a/proxy/`, { environment });
  assertEquals(service.got.map(({ path }) => path), ["/behind/a/proxy/api/v1/audit"]);
});

Deno.test("a service that is not there is one line and exit code 1", async () => {
  const url = `http://127.0.0.1:${freePort()}`;
  const { code, stdout, stderr } = await ran(["audit", "--url", url], {
    environment: { ADMIN_TOKEN: SECRET },
  });
  assertEquals([code, stdout, stderr.trimEnd().split("\n").length], [1, "", 1]);
  assert(stderr.startsWith(`Cannot send GET "${url}/api/v1/audit": `), stderr);
  assert(!stderr.includes(SECRET));
});

Deno.test("a service that never answers is given up after --timeout", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${listener.addr.port}`;
  const environment = { ADMIN_TOKEN: TOKEN };
  const { code, stderr } = await ran(["audit", "--url", url, "--timeout", "50ms"], { environment });
  const line = `Cannot send GET "${url}/api/v1/audit": timed out after 50 ms in total\n`;
  assertEquals([code, stderr], [1, line]);
});

for (const url of ["https://weir.example", "http://127.0.0.1.example/", "http://10.0.0.1:8080"]) {
  Deno.test(`the token that is kept is not sent to ${url}`, async () => {
    await inFolder(SECRET, async (folder) => {
      const { code, stderr } = await ran(["audit", "--url", url], { folder });
      const line = "Cannot call the administration API: set ADMIN_TOKEN or --token-file";
      assertEquals([code, stderr.split("\n")[0]], [2, line]);
    });
  });
}

Deno.test("a token that is missing on this machine: the file of the start task is named", async () => {
  await inFolder(undefined, async (folder) => {
    const { code, stderr } = await ran(["audit", "--url", "http://127.0.0.1:8080"], { folder });
    const line = "Cannot call the administration API: set ADMIN_TOKEN or --token-file; " +
      "this folder has no data/admin-token";
    assertEquals([code, stderr.split("\n")[0]], [2, line]);
  });
});

/** Flags and variables that are refused: exit code and line. */
const WRONG: Readonly<Record<string, readonly [given: string, code: number, line: string]>> = {
  "a URL of another kind": [
    `--url ftp://user:${SECRET}@host/`,
    2,
    "Invalid --url: expected a URL that starts with http:// or https://",
  ],
  "a URL with a password": [
    `WEIR_URL=http://user:${SECRET}@127.0.0.1:1/`,
    2,
    "Invalid WEIR_URL: expected no user name and password",
  ],
  "a URL with a query": [
    `--url http://127.0.0.1:1/?token=${SECRET}`,
    2,
    "Invalid --url: expected a URL without ? and #",
  ],
  "a token that no header carries": [
    `'ADMIN_TOKEN=${SECRET}\nx'`,
    2,
    "Invalid token of ADMIN_TOKEN: it holds a character that no token may have",
  ],
  "a token and a file of the token": [
    "ADMIN_TOKEN_FILE=/no/such/file",
    2,
    'Invalid ADMIN_TOKEN_FILE "/no/such/file": ADMIN_TOKEN is also set; expected only one of them',
  ],
  "a token in a file that is not there": [
    "ADMIN_TOKEN= ADMIN_TOKEN_FILE=/no/such/file",
    2,
    "Invalid ADMIN_TOKEN_FILE \"/no/such/file\": No such file or directory (os error 2): stat '/no/such/file'",
  ],
  "an empty file": ["--token-file /dev/null", 2, 'Invalid token of "/dev/null": it is empty'],
  "a file that is not there": [
    "--token-file /no/such/file",
    2,
    "Cannot read \"/no/such/file\": No such file or directory (os error 2): open '/no/such/file'",
  ],
  "a timeout of nothing": [
    "--timeout 0",
    2,
    'Invalid --timeout "0": expected a duration from 1ms to 24h, such as 10s, 150us or 1m30s',
  ],
};

for (const [name, [given, code, line]] of Object.entries(WRONG)) {
  Deno.test(`${name} is refused, and no secret is shown`, async () => {
    const args = words(given).filter((word) => !/^[A-Z_]+=/.test(word));
    const variables = words(given).filter((word) => !args.includes(word));
    const environment = Object.fromEntries(
      variables.map((word) => [word.split("=")[0] ?? "", word.slice(word.indexOf("=") + 1)]),
    );
    const result = await ran(["audit", ...args], { environment: { ADMIN_TOKEN: TOKEN, ...environment } });
    assertEquals([result.code, result.stdout, result.stderr.split("\n")[0]], [code, "", line]);
    assert(!result.stderr.includes(SECRET));
  });
}
