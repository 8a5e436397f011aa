import { assertEquals } from "#assert";
import { FolderEvents } from "../../../src/base/folder_events.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { eventually, until } from "../../harness/until.ts";

Deno.test("folder events: a named pipe ends the watch, which is replaced and logged", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  const clock = new FakeClock();
  const log: unknown[] = [];
  const seen: string[] = [];
  const ignore = () => {};
  const events = new FolderEvents({
    clock,
    logger: { debug: ignore, info: ignore, error: ignore, warning: (...line) => void log.push(line) },
    onMessage: (message) => void seen.push(message.type === "event" ? `${message.paths}` : message.type),
  });
  try {
    events.watch([folder]);
    await until("the watch", () => seen.includes("watching"));
    await Deno.writeTextFile(`${folder}/a`, "");
    await until("an event", () => seen.includes(`${folder}/a`));
    const { success } = await new Deno.Command("mkfifo", { args: [`${folder}/pipe`] }).output();
    assertEquals(success, true);
    // A beat comes when the answer to the one before had its time: a watch that works is not replaced.
    await until("the watch to be given up", async () => {
      clock.advance(10_000);
      await new Promise((resolve) => setTimeout(resolve, 50));
      return log.length > 0;
    });
    clock.advance(1_000);
    await until("another watch", () => seen.filter((one) => one === "watching").length === 2);
    await eventually([[
      "Folder watch (a named pipe in a folder blocks it) failed; restarting it and re-scanning the folders",
      { error: "no answer to a ping for 60 s", restartMs: 1_000, folders: folder },
    ]], () => log);
    await Deno.writeTextFile(`${folder}/b`, "");
    await until("an event after the pipe", () => seen.includes(`${folder}/b`));
  } finally {
    events.close();
    await Deno.remove(folder, { recursive: true });
  }
  assertEquals(clock.waiting, 0);
});
