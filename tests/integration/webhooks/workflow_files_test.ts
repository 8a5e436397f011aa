import { assert } from "#assert";
import { systemBell } from "../../../src/threads/bell.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { WorkflowFiles } from "../../../src/webhooks/workflows/files.ts";
import { KeptLines } from "../../harness/workflow_fixture.ts";
import { eventually } from "../../harness/until.ts";

Deno.test("workflow files on disk: written, saved by rename and removed, next to a named pipe", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  const write = async (name: string, mark: string) => {
    await Deno.writeTextFile(`${folder}/${name}`, `workflow: a\nsteps:\n- {name: ${mark}, set: {}}\n`);
  };
  const tools = { bell: systemBell, clock: systemClock, logger: new KeptLines() };
  const files = new WorkflowFiles({ folder, envNames: [], ...tools });
  const expect = (mark: string) => eventually(mark, () => files.current("a")?.workflow.steps[0]?.name);
  try {
    await write("a.yaml", "one");
    await files.start();
    await write("a.yaml", "two");
    await expect("two");
    const { success } = await new Deno.Command("mkfifo", { args: [`${folder}/pipe.yaml`] }).output();
    assert(success);
    await write(".a.new", "three");
    await Deno.rename(`${folder}/.a.new`, `${folder}/a.yaml`);
    await expect("three");
    await Deno.remove(`${folder}/a.yaml`);
    await eventually([], () => [...files.names()]);
  } finally {
    await files.close();
    await Deno.remove(folder, { recursive: true });
  }
});
