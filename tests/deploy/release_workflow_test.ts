import { assertEquals } from "#assert";
import { join } from "node:path";
import { parse } from "yaml";
import { TARGETS } from "../../scripts/compile/options.ts";
import { runDeployTool } from "../harness/deploy_tools.ts";
import { needs } from "../harness/tools.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const WORKFLOW = join(ROOT, ".github/workflows/release.yml");
const DENO = /npx -y deno@(\S+) task (\w+)/g;

interface Job {
  readonly needs?: string | readonly string[];
  readonly if?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly { readonly uses?: string; readonly run?: string; readonly if?: string }[];
  readonly strategy?: { readonly matrix: { readonly include: readonly Readonly<Record<string, string>>[] } };
}

Deno.test({
  ...needs(["actionlint"], "release.yml: actionlint finds nothing wrong with it"),
  async fn() {
    assertEquals(await runDeployTool("actionlint", ["-no-color", WORKFLOW]), { code: 0, text: "" });
  },
});

Deno.test("release.yml: actions are pinned to a commit, and name its version", async () => {
  const lines = (await Deno.readTextFile(WORKFLOW)).split("\n").filter((line) => line.includes("uses:"));
  assertEquals(lines.length > 5, true);
  assertEquals(lines.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)), []);
});

Deno.test("release.yml: only a tag publishes, after CI, the tests of the program, the smoke tests and the images", async () => {
  const { permissions, jobs } = await workflow();
  assertEquals(permissions, { contents: "read" });
  assertEquals(needed("publish", jobs), ["check", "end_to_end", "image", "programs", "smoke"]);
  const isTag = "github.ref_type == 'tag'";
  assertEquals(jobs["publish"]?.if, isTag);
  for (const [name, { steps, permissions = {} }] of Object.entries(jobs)) {
    const writing = Object.values(permissions).includes("write");
    assertEquals([name, writing], [name, ["image", "publish"].includes(name)]);
    const publishing = steps.filter(({ run = "" }) => /docker push|gh release|imagetools create/.test(run));
    if (name !== "publish") assertEquals(publishing.filter((step) => step.if !== isTag), []);
  }
});

Deno.test("release.yml: its commands are those of the project, with the Deno that the CI uses", async () => {
  const { jobs } = await workflow();
  const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const [, release = ""] = /deno@(\S+)/.exec(await Deno.readTextFile(join(ROOT, ".ci/run"))) ?? [];
  const run = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = [] }) => run)).join("\n");
  const called = [...run.matchAll(DENO)].map(([, deno = "", task = ""]) => [deno, task in tasks]);
  assertEquals(called, [[release, true], [release, true]]);
  for (const script of new Set(run.match(/\.ci\/\w+/g))) {
    assertEquals(((await Deno.stat(join(ROOT, script))).mode ?? 0) & 0o111, 0o111, script);
  }
  const targets = jobs["smoke"]?.strategy?.matrix.include.map(({ target }) => target) ?? [];
  assertEquals(targets.filter((target) => !TARGETS.some((known) => known === target)), []);
  assertEquals(targets.filter((target) => target?.endsWith("darwin")).length, 2);
});

async function workflow(): Promise<{ permissions: Record<string, string>; jobs: Record<string, Job> }> {
  return parse(await Deno.readTextFile(WORKFLOW));
}

/** Every job that has to succeed before this one. */
function needed(name: string, jobs: Readonly<Record<string, Job>>): string[] {
  const found = new Set<string>();
  const add = (job: string) => {
    for (const before of [jobs[job]?.needs ?? []].flat()) {
      found.add(before);
      add(before);
    }
  };
  add(name);
  return [...found].sort();
}
