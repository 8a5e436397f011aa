import { ADMINISTRATOR } from "../../harness/administrators.ts";
import { assertEquals, assertRejects } from "@std/assert";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { chosenKeyFile } from "../../../src/webhooks/secrets/key_file.ts";
import type { WebhookOptions } from "../../../src/webhooks/service/message.ts";
import { openWebhookService } from "../../../src/webhooks/service/opening.ts";
import type { WebhookService } from "../../../src/webhooks/service/service.ts";
import { KeptLog } from "../../harness/http_fixture.ts";
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
const FIRST_KEY = new Uint8Array(32).fill(1).toBase64();
const OTHER_KEY = new Uint8Array(32).fill(2).toBase64();

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "weir_opening_" });
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function opened(
  folder: string,
  options: Partial<WebhookOptions>,
  run: (service: WebhookService, log: KeptLog) => Promise<void>,
  clock: Clock = systemClock,
): Promise<void> {
  const log = new KeptLog();
  const service = await openWebhookService({
    options: {
      store: { kind: "file", path: join(folder, "weir.db") },
      encryptionKeys: [FIRST_KEY],
      timeoutMs: 60_000,
      connectTimeoutMs: 60_000,
      retentionMs: 86_400_000,
      disableAfterMs: 5 * 86_400_000,
      maxInFlight: 10,
      allowCidrs: [],
      workflowEnv: {},
      workflowAllowCidrs: [],
      maxRunning: 10,
      isTraced: false,
      version: "test",
      ...options,
    },
    limit: () => Promise.resolve({ code: "OK" }),
    clock,
    logger: log,
  });
  try {
    service.start();
    await run(service, log);
  } finally {
    await service.stop(60_000);
  }
}

async function administer(service: WebhookService, method: string, path: string, sent?: object) {
  const body = sent === undefined ? {} : { body: JSON.stringify(sent) };
  const answer = await service.administer({
    requestId: "r",
    administrator: ADMINISTRATOR,
    method,
    path,
    query: "",
    ...body,
  });
  return answer.body === "" ? undefined : JSON.parse(answer.body);
}

/** What became of a run of this workflow. */
async function runOf(service: WebhookService, workflow: string): Promise<unknown> {
  const { key } = await administer(service, "POST", "/triggers", { name: workflow, workflow });
  const keyHash = createHash("sha256").update(key).digest("hex");
  const { body } = await service.acceptTrigger({ requestId: "r", name: workflow, keyHash, body: "{}" });
  const path = `/executions/${JSON.parse(body).executionId}`;
  let run = await administer(service, "GET", path);
  await until("the run is over", async () => {
    run = await administer(service, "GET", path);
    return /^(?:succeeded|failed)$/.test(run.status);
  });
  return [run.status, run.output, run.steps[0].error];
}

Deno.test("opening: a variable that is not set is a path that is not there, and no empty text", () =>
  withFolder(async (folder) => {
    const workflowDirectory = join(folder, "workflows");
    await Deno.mkdir(workflowDirectory);
    await Deno.writeTextFile(join(workflowDirectory, "reads.yaml"), ENVIRONMENT);
    await Deno.writeTextFile(join(workflowDirectory, "reads-unset.yaml"), UNSET);
    const workflowEnv = { SET: "a", EMPTY: "", UNSET: undefined };
    await opened(folder, { workflowDirectory, workflowEnv }, async (service) => {
      assertEquals(await runOf(service, "reads"), ["succeeded", { set: "a", empty: "" }, undefined]);
      const missing = 'Cannot read "env.UNSET": it has no value';
      assertEquals(await runOf(service, "reads-unset"), ["failed", undefined, missing]);
    });
  }));

Deno.test("opening: a key that is missing for the secrets of the store is told at once", () =>
  withFolder(async (folder) => {
    const missing = (log: KeptLog) =>
      log.lines.filter((line) => JSON.stringify(line).includes("Cannot decrypt a secret"));
    await opened(folder, {}, async (service, log) => {
      for (const url of ["https://1.1.1.1/a", "https://1.1.1.1/b"]) {
        await administer(service, "POST", "/endpoints", { url, headers: { authorization: "Bearer x" } });
      }
      assertEquals(missing(log), []);
    });
    await opened(folder, { encryptionKeys: [OTHER_KEY] }, async (service, log) => {
      assertEquals(missing(log).length, 1);
      assertEquals(JSON.stringify(missing(log)).includes('"endpoints":2'), true);
      assertEquals((await administer(service, "GET", "/endpoints")).items.length, 2);
    });
    await opened(folder, { encryptionKeys: [OTHER_KEY, FIRST_KEY] }, (_, log) => {
      assertEquals(missing(log), []);
      return Promise.resolve();
    });
  }));

Deno.test("opening: the key file may be in another place, and is moved there by hand", () =>
  withFolder(async (folder) => {
    const [named, ofStore] = [join(folder, "named.key"), join(folder, "weir.db.key")];
    const settings = { encryptionKeys: [], encryptionKeyFile: named };
    const url = "https://1.1.1.1/";
    await opened(folder, { encryptionKeys: [] }, async (service) => {
      await administer(service, "POST", "/endpoints", { url });
    });
    const { message } = await assertRejects(() => opened(folder, settings, () => Promise.resolve()));
    assertEquals(message, `Cannot use the key file "${named}": it is missing; move "${ofStore}" there`);
    await Deno.rename(ofStore, named);
    await opened(folder, settings, async (service) => {
      assertEquals((await service.metrics()).note, undefined);
    });
    assertEquals(await Deno.stat(ofStore).catch((error: Error) => error.name), "NotFound");
    await Deno.copyFile(named, ofStore);
    await opened(folder, settings, (_, log) => {
      assertEquals(JSON.stringify(log.lines).includes("A key file next to the store is not used"), true);
      return Promise.resolve();
    });
  }));

Deno.test("opening: a named key file is created for a store in a file, and required for a shared one", () =>
  withFolder(async (folder) => {
    const named = join(folder, "named.key");
    const logger = new KeptLog();
    const ofStore = join(folder, "weir.db.key");
    const hasKeys = false;
    assertEquals(await chosenKeyFile({ named, ofStore, hasKeys, logger }), named);
    assertEquals(await chosenKeyFile({ named: undefined, ofStore, hasKeys, logger }), ofStore);
    const shared = { named, ofStore: undefined, hasKeys, logger };
    const { message } = await assertRejects(() => chosenKeyFile(shared));
    assertEquals(
      message,
      `Cannot use the key file "${named}": it is missing, and the store is shared; create it once`,
    );
    assertEquals(await chosenKeyFile({ ...shared, hasKeys: true }), named);
    await Deno.writeTextFile(named, FIRST_KEY);
    assertEquals(await chosenKeyFile(shared), named);
  }));

Deno.test("opening: the key file next to the store is to be removed only where its key is in the other file", () =>
  withFolder(async (folder) => {
    const [named, ofStore] = [join(folder, "named.key"), join(folder, "weir.db.key")];
    const advice = async (named: string) => {
      const logger = new KeptLog();
      assertEquals(await chosenKeyFile({ named, ofStore, hasKeys: false, logger }), named);
      return logger.lines.map(({ message }) => message);
    };
    await Deno.writeTextFile(ofStore, FIRST_KEY);
    assertEquals(await advice(`${folder}/./weir.db.key`), []);
    await Deno.symlink(ofStore, named);
    assertEquals(await advice(named), []);
    await Deno.remove(named);
    await Deno.writeTextFile(named, `${FIRST_KEY}\n`);
    const unused = "A key file next to the store is not used";
    assertEquals(await advice(named), [`${unused}: it holds the same key, remove it`]);
    await Deno.writeTextFile(named, OTHER_KEY);
    assertEquals(await advice(named), [
      `${unused}: it holds another key, which secrets in the store may require`,
    ]);
  }));

Deno.test("opening: with keys in the settings a missing key file does not stop the service", () =>
  withFolder(async (folder) => {
    const missing = join(folder, "missing.key");
    await Deno.writeTextFile(join(folder, "weir.db.key"), OTHER_KEY);
    await opened(folder, { encryptionKeyFile: missing }, (_, log) => {
      assertEquals(JSON.stringify(log.lines).includes("The key file is missing"), true);
      return Promise.resolve();
    });
  }));

Deno.test("opening: what cannot be read is noted until nothing needs it any more", () =>
  withFolder(async (folder) => {
    const url = "https://1.1.1.1/";
    const headers = { authorization: "Bearer x" };
    let [first, second, trigger] = ["", "", ""];
    await opened(folder, {}, async (service) => {
      ({ id: first } = await administer(service, "POST", "/endpoints", { url, headers }));
      ({ id: second } = await administer(service, "POST", "/endpoints", { url }));
      const verify = { scheme: "github" };
      const made = await administer(service, "POST", "/triggers", { name: "hub", workflow: "w", verify });
      trigger = made.id;
      assertEquals((await service.metrics()).note, undefined);
    });
    const clock = FakeClock.ofMachine();
    await opened(folder, { encryptionKeys: [OTHER_KEY] }, async (service) => {
      const noted = async (afterMs: number) => {
        clock.elapsedAheadMs += afterMs;
        return (await service.metrics()).note?.replace(/:.*/, "");
      };
      const all = await noted(0);
      await administer(service, "DELETE", `/triggers/${trigger}`);
      const seen = [all, await noted(30_000)];
      await administer(service, "DELETE", `/endpoints/${second}`);
      seen.push(await noted(0), await noted(30_000));
      await administer(service, "POST", `/endpoints/${first}/rotate`, { activeIn: "0s" });
      seen.push(await noted(30_000));
      await administer(service, "PATCH", `/endpoints/${first}`, { headers });
      seen.push(await noted(30_000));
      assertEquals(seen, [
        "4 secrets of 2 endpoints and 1 trigger cannot be read",
        "3 secrets of 2 endpoints cannot be read",
        "3 secrets of 2 endpoints cannot be read",
        "2 secrets of 1 endpoint cannot be read",
        "1 secret of 1 endpoint cannot be read",
        undefined,
      ]);
    }, clock);
  }));
