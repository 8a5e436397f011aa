import { assert } from "#assert";
import { systemBell, type WatchedFolder } from "../../../src/threads/bell.ts";
import { until } from "../../harness/until.ts";

/** Calls `act`, and waits until the bell rings after it; each look calls `again`. */
type Rings = (act: () => Promise<unknown>, again?: () => void) => Promise<void>;

/** Runs with a folder, and with the folders of the bell to be set. */
async function withBell(
  run: (top: string, watch: (...folders: readonly WatchedFolder[]) => void, rings: Rings) => Promise<void>,
): Promise<void> {
  const top = await Deno.realPath(await Deno.makeTempDir());
  let count = 0;
  const onRing = () => void count++;
  const rings: Rings = async (act, again = () => {}) => {
    const before = count;
    await act();
    await until("the bell", () => {
      again();
      return count > before;
    });
  };
  try {
    await run(top, (...folders) => systemBell.watch(onRing, folders), rings);
  } finally {
    systemBell.watch(onRing, []);
    await Deno.remove(top, { recursive: true });
  }
}

Deno.test("bell: it rings for events in each folder, for swapped links and for a folder made anew", () =>
  withBell(async (top, watch, rings) => {
    const [one, two] = [`${top}/one`, `${top}/two`];
    for (const folder of [one, two]) await Deno.mkdir(folder);
    await Deno.mkdir(`${top}/elsewhere`);
    const both = [{ path: one, identity: "1" }, { path: two, identity: "2" }];
    // It rings when it begins to watch.
    await rings(() => Promise.resolve(watch(...both)));
    await rings(() => Deno.writeTextFile(`${one}/a`, ""));
    await rings(() => Deno.writeTextFile(`${two}/a`, ""));
    await rings(() => Deno.symlink(`${top}/elsewhere`, `${two}/link`));
    await rings(() => Deno.symlink(top, `${two}/next`));
    await rings(() => Deno.rename(`${two}/next`, `${two}/link`));
    await Deno.rename(one, `${top}/away`);
    await Deno.mkdir(one);
    await rings(() => Promise.resolve(watch({ path: one, identity: "3" })));
    await rings(() => Deno.writeTextFile(`${one}/b`, ""));
  }));

Deno.test("bell: a folder that is missing is watched once it is there, when it is given again", () =>
  withBell(async (top, watch, rings) => {
    const folder = { path: `${top}/folder`, identity: "1" };
    watch(folder);
    await rings(() => Deno.mkdir(folder.path), () => watch(folder));
    await rings(() => Deno.writeTextFile(`${folder.path}/a`, ""));
  }));

Deno.test("bell: an event of a named pipe holds up nothing, and the next bell rings", () =>
  withBell(async (top, watch, rings) => {
    await rings(() => Promise.resolve(watch({ path: top, identity: "1" })));
    const { success } = await new Deno.Command("mkfifo", { args: [`${top}/pipe`] }).output();
    assert(success);
    watch({ path: top, identity: "2" });
    // Without folders its thread ends.
    watch();
    await rings(() => Promise.resolve(watch({ path: top, identity: "3" })));
  }));
