import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { commitOf } from "../../../scripts/compile/commit.ts";
import { TARGETS } from "../../../scripts/compile/options.ts";
import {
  addBase,
  freshDenoFolder,
  git,
  HERE,
  namesIn,
  newFolder,
  OFFLINE,
  OTHER,
  runTask,
  smallSources,
  STAND_IN,
} from "./compile_bed.ts";

const CHANGELOG = "## Unreleased\n\n- Later.\n\n## 9.8.7 - 2026-11-23\n\n- A [page](docs/page.md).\n";

Deno.test({
  name:
    "release: programs of the platforms with a base runtime, the others by name, materials, notes and sums",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using sources = await committedSources();
    await using out = await newFolder();
    await using deno = await freshDenoFolder();
    for (const target of [HERE, OTHER]) await addBase(deno.path, target, STAND_IN);
    const said = `weir 9.8.7 (commit ${await commitOf(sources.path)}, deno ${Deno.version.deno})`;
    const env = { ...OFFLINE, DENO_DIR: deno.path, version: said };
    const args = ["--output", out.path, "--url", "https://host/weir/blob/v9.8.7"];
    const { code, stdout, stderr } = await runTask("release", args, { env, root: sources.path });
    const texts = ["weir-9.8.7.cdx.json", "weir-9.8.7.openapi.json", "RELEASE_NOTES.md"];
    const archives = ["weir-rest-9.8.7.tgz", "weir-webhooks-9.8.7.tgz"];
    const files = [`weir-${HERE}`, `weir-${OTHER}`, ...texts, ...archives].sort();
    assertEquals([code, stderr, await namesIn(out.path)], [0, "", ["SHA256SUMS", ...files].sort()]);
    const missing = stdout.split("\n").flatMap((line) => /^not made for (\S+): /.exec(line)?.[1] ?? []);
    assertEquals(missing, TARGETS.filter((target) => target !== HERE && target !== OTHER));
    assertMatch(stdout, /^weir 9\.8\.7: 2 of 6 platforms$/m);

    const check = { args: ["--check", "--strict", "SHA256SUMS"], cwd: out.path, stdout: "piped" as const };
    const sums = await new Deno.Command("sha256sum", check).output();
    const checked = new TextDecoder().decode(sums.stdout).trim().split("\n");
    assertEquals([sums.success, checked.sort()], [true, files.map((name) => `${name}: OK`)]);
    const notes = await Deno.readTextFile(join(out.path, "RELEASE_NOTES.md"));
    assertEquals(notes, "- A [page](https://host/weir/blob/v9.8.7/docs/page.md).\n");
    const jsonOf = async (name: string) => JSON.parse(await Deno.readTextFile(join(out.path, name)));
    const { metadata, components } = await jsonOf("weir-9.8.7.cdx.json");
    assertEquals([metadata.component.version, components.length > 50], ["9.8.7", true]);
    assertEquals((await jsonOf("weir-9.8.7.openapi.json")).info.version, "9.8.7");
  },
});

Deno.test("release: a platform that is named must be made, and without any nothing is left", async () => {
  await using sources = await committedSources();
  await using out = await newFolder();
  await using deno = await freshDenoFolder();
  for (const flags of [["--target", OTHER], []]) {
    const args = ["--output", out.path, ...flags];
    const { code, stderr } = await runTask("release", args, {
      env: { ...OFFLINE, DENO_DIR: deno.path },
      root: sources.path,
    });
    assertMatch(
      stderr,
      /^Cannot compile for "\S+": the base runtime of Deno \S+ for it is not on this machine/,
    );
    assertEquals([code, await namesIn(out.path)], [1, []]);
  }
});

Deno.test("release: a version without notes is rejected before anything is compiled", async () => {
  await using sources = await committedSources();
  await using out = await newFolder();
  await Deno.writeTextFile(join(sources.path, "CHANGELOG.md"), "## Unreleased\n\n- Later.\n");
  const { code, stderr } = await runTask("release", ["--output", out.path], {
    env: OFFLINE,
    root: sources.path,
  });
  assertMatch(stderr, /^Cannot release 9\.8\.7: CHANGELOG\.md has no section /);
  assertEquals([code, await namesIn(out.path)], [1, []]);
});

/** Small sources of version 9.8.7 with a changelog, in a repository with one commit. */
async function committedSources(): Promise<{ readonly path: string } & AsyncDisposable> {
  const sources = await smallSources();
  const path = join(sources.path, "deno.json");
  await Deno.writeTextFile(
    path,
    (await Deno.readTextFile(path)).replace(/"version": "[^"]+"/, '"version": "9.8.7"'),
  );
  await Deno.writeTextFile(join(sources.path, "CHANGELOG.md"), CHANGELOG);
  await git(sources.path, "init", "--quiet");
  await git(sources.path, "add", ".");
  await git(sources.path, "commit", "--quiet", "--message", "One");
  return sources;
}
