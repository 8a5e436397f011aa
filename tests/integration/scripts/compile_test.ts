import { assertEquals, assertMatch } from "#assert";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { UNUSED } from "../../../scripts/compile/contents.ts";
import { commitOf } from "../../../scripts/compile/commit.ts";
import { packagesToEmbed } from "../../../scripts/compile/embedded_files.ts";
import { writeSums } from "../../../scripts/compile/sums.ts";
import { git, newFolder, ROOT } from "./compile_bed.ts";

Deno.test("compile: the commit is that of the tree, and says when the tree was changed", async () => {
  await using folder = await newFolder();
  const before = await commitOf(folder.path);
  await git(folder.path, "init", "--quiet");
  const empty = await commitOf(folder.path);
  await Deno.writeTextFile(join(folder.path, "main.ts"), "");
  await git(folder.path, "add", "main.ts");
  await git(folder.path, "commit", "--quiet", "--message", "One");
  const clean = await commitOf(folder.path) ?? "";
  // A copy that only stands within it has no commit.
  await Deno.mkdir(join(folder.path, "copy"));
  assertEquals(await commitOf(join(folder.path, "copy")), undefined);
  await Deno.writeTextFile(join(folder.path, "main.ts"), "changed");
  const changed = await commitOf(folder.path);
  await git(folder.path, "checkout", "--quiet", "main.ts");
  await Deno.writeTextFile(join(folder.path, "new.ts"), "");
  assertEquals([before, empty], [undefined, undefined]);
  assertMatch(clean, /^[0-9a-f]{7}$/);
  assertEquals([changed, await commitOf(folder.path)], [`${clean}-dirty`, `${clean}-dirty`]);
});

Deno.test("compile: sums of other programs stay while these are there", async () => {
  await using folder = await newFolder();
  for (const name of ["weir", "weir-a", "weir-b"]) await Deno.writeTextFile(join(folder.path, name), name);
  await writeSums(folder.path, ["weir-b", "weir"]);
  await Deno.remove(join(folder.path, "weir"));
  await writeSums(folder.path, ["weir-a"]);
  const lines = (await Deno.readTextFile(join(folder.path, "SHA256SUMS"))).split("\n");
  assertEquals(lines.map((line) => line.slice(64)), ["  weir-a", "  weir-b", ""]);
  const check = { args: ["--check", "--strict", "SHA256SUMS"], cwd: folder.path };
  const { success } = await new Deno.Command("sha256sum", { ...check, stdout: "null" }).output();
  await Deno.writeTextFile(join(folder.path, "weir-b"), "other");
  const other = await new Deno.Command("sha256sum", { ...check, stdout: "null", stderr: "null" }).output();
  assertEquals([success, other.success], [true, false]);
});

Deno.test("compile: the parts of packages that are left out are there", async () => {
  const packages = [...await packagesToEmbed(ROOT)];
  for (const [name, unused] of Object.entries(UNUSED)) {
    const folder = packages.find(([id]) => id.startsWith(`${name}@`))?.[1] ?? "";
    const files = await readdir(folder, { recursive: true });
    assertEquals([name, files.some((file) => unused.test(file))], [name, true]);
  }
});
