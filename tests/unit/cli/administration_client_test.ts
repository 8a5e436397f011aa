import { assert, assertEquals } from "@std/assert";
import { ran, TOKEN } from "../../harness/administration_fixture.ts";

const SECRET = "secret-in-a-file-0123456789-0123456789";

/** Gives a folder of its own; `data/admin-token` holds what is given. */
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

interface Wrong {
  readonly name: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly code: number;
  readonly line: string;
}

const WRONG: readonly Wrong[] = [
  {
    name: "a URL of another kind",
    args: ["--url", `ftp://user:${SECRET}@host/`],
    code: 2,
    line: "Invalid --url: expected a URL that starts with http:// or https://",
  },
  {
    name: "a URL with a password",
    environment: { WEIR_URL: `http://user:${SECRET}@127.0.0.1:1/` },
    code: 2,
    line: "Invalid WEIR_URL: expected no user name and password",
  },
  {
    name: "a URL with a query",
    args: ["--url", `http://127.0.0.1:1/?token=${SECRET}`],
    code: 2,
    line: "Invalid --url: expected a URL without ? and #",
  },
  {
    name: "a token that no header carries",
    environment: { ADMIN_TOKEN: `${SECRET}\nx` },
    code: 2,
    line: "Invalid token of ADMIN_TOKEN: it holds a character that no token may have",
  },
  {
    name: "a token and a file of the token",
    environment: { ADMIN_TOKEN_FILE: "/no/such/file" },
    code: 2,
    line: 'Invalid ADMIN_TOKEN_FILE "/no/such/file": ADMIN_TOKEN is also set; expected only one of them',
  },
  {
    name: "a token in a file that is not there",
    environment: { ADMIN_TOKEN: "", ADMIN_TOKEN_FILE: "/no/such/file" },
    code: 2,
    line:
      "Invalid ADMIN_TOKEN_FILE \"/no/such/file\": No such file or directory (os error 2): stat '/no/such/file'",
  },
  {
    name: "an empty file",
    args: ["--token-file", "/dev/null"],
    code: 2,
    line: 'Invalid token of "/dev/null": it is empty',
  },
  {
    name: "a file that is not there",
    args: ["--token-file", "/no/such/file"],
    code: 1,
    line: "Cannot read \"/no/such/file\": No such file or directory (os error 2): open '/no/such/file'",
  },
  {
    name: "a timeout of nothing",
    args: ["--timeout", "0"],
    code: 2,
    line: 'Invalid --timeout "0": expected a duration from 1ms to 24h, such as 10s',
  },
];

for (const { name, args = [], environment = {}, code, line } of WRONG) {
  Deno.test(`${name} is refused, and no secret is shown`, async () => {
    const result = await ran(["audit", ...args], { environment: { ADMIN_TOKEN: TOKEN, ...environment } });
    assertEquals([result.code, result.stdout, result.stderr.split("\n")[0]], [code, "", line]);
    assert(!result.stderr.includes(SECRET));
  });
}
