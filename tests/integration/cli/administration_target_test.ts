import { assert, assertEquals } from "@std/assert";
import { freePort } from "../../harness/free_port.ts";
import { PlayedAdministration, ran, TOKEN } from "../../harness/administration_fixture.ts";

const SECRET = "secret-in-a-file-0123456789-0123456789";
const PAGE = { body: '{"items":[]}' };

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
