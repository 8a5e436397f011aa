import { assertEquals, assertMatch, assertRejects } from "#assert";
import { chosenKeyFile } from "../../../src/webhooks/secrets/key_file.ts";
import type { WebhookOptions } from "../../../src/webhooks/service/message.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { administer, openService, SERVICE_KEY, startRun } from "../../harness/store_service.ts";
import { until } from "../../harness/until.ts";

const ENVIRONMENT = `workflow: reads
steps:
  - name: result
    set: { set: "{{ env.SET }}", empty: "{{ env.EMPTY }}" }
`;
const UNSET = `workflow: reads-unset
steps:
  - name: result
    set: { unset: "{{ env.UNSET }}" }
`;
const OTHER_KEY = new Uint8Array(32).fill(2).toBase64();
const URL = "https://1.1.1.1/";
const HEADERS = { authorization: "Bearer x" };

/** A service that works on the file of a folder, with what it logs. */
async function opened(folder: StoreFolder, options: Partial<WebhookOptions> = {}, clock?: FakeClock) {
  const logger = new RecordedLogger();
  const service = await openService({ kind: "file", path: folder.file("weir.db") }, {
    options,
    logger,
    ...clock === undefined ? {} : { clock },
  });
  service.start();
  return Object.assign(service, { log: () => JSON.stringify(logger.lines) });
}

Deno.test("opening: a variable that is not set is a path that is not there, and no empty text", async () => {
  using folder = new StoreFolder();
  const workflowDirectory = folder.file("workflows");
  await Deno.mkdir(workflowDirectory);
  await Deno.writeTextFile(`${workflowDirectory}/reads.yaml`, ENVIRONMENT);
  await Deno.writeTextFile(`${workflowDirectory}/reads-unset.yaml`, UNSET);
  const workflowEnv = { SET: "a", EMPTY: "", UNSET: undefined };
  await using service = await opened(folder, { workflowDirectory, workflowEnv });
  const runOf = async (workflow: string) => {
    const { key } = await administer(service, "POST", "/triggers", { name: workflow, workflow });
    const id = await startRun(service, workflow, key);
    return await until("the end", async () => {
      const { status, output, steps } = await administer(service, "GET", `/executions/${id}`);
      return /^(?:succeeded|failed)$/.test(status) && [status, output, steps[0].error];
    });
  };
  assertEquals(await runOf("reads"), ["succeeded", { set: "a", empty: "" }, undefined]);
  const missing = 'Cannot read "env.UNSET": it has no value';
  assertEquals(await runOf("reads-unset"), ["failed", undefined, missing]);
});

Deno.test("opening: a key that is missing for the secrets of the store is logged once", async () => {
  using folder = new StoreFolder();
  /** The number of times that a missing key is logged with these keys, and its number of endpoints. */
  const missing = async (encryptionKeys: readonly string[], count = 0) => {
    await using service = await opened(folder, { encryptionKeys });
    for (let n = 0; n < count; n++) {
      await administer(service, "POST", "/endpoints", { url: URL, headers: HEADERS });
    }
    assertEquals((await administer(service, "GET", "/endpoints")).items.length, 2);
    return service.log().match(/Cannot decrypt a secret[^}]*"endpoints":2/g)?.length ?? 0;
  };
  assertEquals(await missing([SERVICE_KEY], 2), 0);
  assertEquals(await missing([OTHER_KEY]), 1);
  assertEquals(await missing([OTHER_KEY, SERVICE_KEY]), 0);
});

Deno.test("opening: the key file may be in another place, and is moved there by hand", async () => {
  using folder = new StoreFolder();
  const [named, ofStore] = [folder.file("named.key"), folder.file("weir.db.key")];
  const settings = { encryptionKeys: [], encryptionKeyFile: named };
  {
    await using service = await opened(folder, { encryptionKeys: [] });
    await administer(service, "POST", "/endpoints", { url: URL });
  }
  const { message } = await assertRejects(() => opened(folder, settings));
  assertEquals(message, `Cannot use the key file "${named}": it is missing; move "${ofStore}" there`);
  await Deno.rename(ofStore, named);
  {
    await using service = await opened(folder, settings);
    assertEquals((await service.metrics()).note, undefined);
  }
  assertEquals(await Deno.stat(ofStore).catch((error: Error) => error.name), "NotFound");
  await Deno.copyFile(named, ofStore);
  await using service = await opened(folder, settings);
  assertMatch(service.log(), /A key file next to the store is not used/);
});

Deno.test("opening: a named key file is created for a store in a file, and required for a shared one", async () => {
  using folder = new StoreFolder();
  const [named, ofStore, logger] = [
    folder.file("named.key"),
    folder.file("weir.db.key"),
    new RecordedLogger(),
  ];
  const own = { ofStore, hasKeys: false, logger };
  assertEquals(await chosenKeyFile({ ...own, named }), named);
  assertEquals(await chosenKeyFile({ ...own, named: undefined }), ofStore);
  const shared = { ...own, named, ofStore: undefined };
  assertEquals(
    (await assertRejects(() => chosenKeyFile(shared))).message,
    `Cannot use the key file "${named}": it is missing, and the store is shared; create it once`,
  );
  assertEquals(await chosenKeyFile({ ...shared, hasKeys: true }), named);
  await Deno.writeTextFile(named, SERVICE_KEY);
  assertEquals(await chosenKeyFile(shared), named);
});

Deno.test("opening: the key file next to the store is to be removed only where its key is in the other file", async () => {
  using folder = new StoreFolder();
  const [named, ofStore] = [folder.file("named.key"), folder.file("weir.db.key")];
  const advice = async (named: string) => {
    const logger = new RecordedLogger();
    assertEquals(await chosenKeyFile({ named, ofStore, hasKeys: false, logger }), named);
    return logger.lines.map(({ message }) => message);
  };
  await Deno.writeTextFile(ofStore, SERVICE_KEY);
  assertEquals(await advice(folder.file("./weir.db.key")), []);
  await Deno.symlink(ofStore, named);
  assertEquals(await advice(named), []);
  await Deno.remove(named);
  await Deno.writeTextFile(named, `${SERVICE_KEY}\n`);
  const unused = "A key file next to the store is not used";
  assertEquals(await advice(named), [`${unused}: it holds the same key, remove it`]);
  await Deno.writeTextFile(named, OTHER_KEY);
  assertEquals(await advice(named), [
    `${unused}: it holds another key, which secrets in the store may require`,
  ]);
});

Deno.test("opening: with keys in the settings a missing key file does not stop the service", async () => {
  using folder = new StoreFolder();
  await Deno.writeTextFile(folder.file("weir.db.key"), OTHER_KEY);
  await using service = await opened(folder, { encryptionKeyFile: folder.file("missing.key") });
  assertMatch(service.log(), /The key file is missing/);
});

Deno.test("opening: what cannot be read is noted until nothing needs it any more", async () => {
  using folder = new StoreFolder();
  let [first, second, trigger] = ["", "", ""];
  {
    await using service = await opened(folder);
    ({ id: first } = await administer(service, "POST", "/endpoints", { url: URL, headers: HEADERS }));
    ({ id: second } = await administer(service, "POST", "/endpoints", { url: URL }));
    const signed = { name: "hub", workflow: "w", verify: { scheme: "github" } };
    ({ id: trigger } = await administer(service, "POST", "/triggers", signed));
    assertEquals((await service.metrics()).note, undefined);
  }
  const clock = FakeClock.ofMachine();
  await using service = await opened(folder, { encryptionKeys: [OTHER_KEY] }, clock);
  const noted = async (afterMs: number) => {
    clock.elapsedAheadMs += afterMs;
    return (await service.metrics()).note?.replace(/:.*/, "");
  };
  const seen = [await noted(0)];
  await administer(service, "DELETE", `/triggers/${trigger}`);
  seen.push(await noted(30_000));
  await administer(service, "DELETE", `/endpoints/${second}`);
  seen.push(await noted(0), await noted(30_000));
  await administer(service, "POST", `/endpoints/${first}/rotate`, { activeIn: "0s" });
  seen.push(await noted(30_000));
  await administer(service, "PATCH", `/endpoints/${first}`, { headers: HEADERS });
  seen.push(await noted(30_000));
  assertEquals(seen, [
    "4 secrets of 2 endpoints and 1 trigger cannot be read",
    "3 secrets of 2 endpoints cannot be read",
    "3 secrets of 2 endpoints cannot be read",
    "2 secrets of 1 endpoint cannot be read",
    "1 secret of 1 endpoint cannot be read",
    undefined,
  ]);
});

Deno.test("opening: a file of authorities that cannot be used stops the service", async () => {
  using folder = new StoreFolder();
  const missing = folder.file("ca.pem");
  const { message } = await assertRejects(() => opened(folder, { caFile: missing }));
  assertMatch(message, /^Cannot use WEBHOOK_CA_FILE ".*ca\.pem": ENOENT/);
  await Deno.writeTextFile(missing, "");
  const empty = await assertRejects(() => opened(folder, { caFile: missing }));
  assertEquals(
    empty.message,
    `Cannot use WEBHOOK_CA_FILE "${missing}": it holds no certificate in PEM; expected certificates in PEM`,
  );
});
