import { assert, assertEquals } from "#assert";
import { WorkflowFiles } from "../../../src/webhooks/workflows/files.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { KeptLines } from "../../harness/workflow_fixture.ts";

Deno.test("workflow files: a named pipe holds up nothing, and a change is found within seconds", async () => {
  const folder = await Deno.makeTempDir();
  const { success } = await new Deno.Command("mkfifo", { args: [`${folder}/pipe.yaml`] }).output();
  assert(success);
  const write = (id: string) =>
    Deno.writeTextFile(`${folder}/${id}.yaml`, `workflow: ${id}\nsteps:\n- {name: one, set: {}}\n`);
  await write("a");
  const clock = new FakeClock();
  const files = new WorkflowFiles({ folder, envNames: [], clock, logger: new KeptLines() });
  await files.start();
  assertEquals(files.names(), ["a"]);
  await write("b");
  await until("the change", () => {
    // No time passes while it looks.
    if (clock.waiting > 0) clock.advance(100);
    return files.names().length === 2;
  }, { intervalMs: 2 });
  await files.close();
  await Deno.remove(folder, { recursive: true });
});
