import { assertEquals } from "#assert";
import { join } from "node:path";
import { parse } from "yaml";
import { TARGETS } from "../../scripts/compile/options.ts";
import { runDeployTool } from "../harness/deploy_tools.ts";
import { needs } from "../harness/tools.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const FOLDER = join(ROOT, ".github/workflows");
const FILES = ["ci.yml", "release.yml"];
const DENO = /npx -y deno@(\S+) task (\w+)/g;

interface Job {
  readonly needs?: string | readonly string[];
  readonly if?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  /** Another workflow in place of steps. */
  readonly uses?: string;
  readonly steps?: readonly { readonly uses?: string; readonly run?: string; readonly if?: string }[];
  readonly strategy?: { readonly matrix: { readonly include: readonly Readonly<Record<string, string>>[] } };
}

for (const file of FILES) {
  Deno.test({
    ...needs(["actionlint"], `${file}: actionlint finds nothing wrong with it`),
    async fn() {
      assertEquals(await runDeployTool("actionlint", ["-no-color", join(FOLDER, file)]), {
        code: 0,
        text: "",
      });
    },
  });

  Deno.test(`${file}: actions are pinned to a commit, and name its version`, async () => {
    const lines = (await Deno.readTextFile(join(FOLDER, file))).split("\n");
    const uses = lines.filter((line) => /uses: [^.]/.test(line));
    assertEquals(uses.length > 0, true);
    assertEquals(
      uses.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line)),
      [],
    );
  });
}

Deno.test("ci.yml: a push to main and a pull request run the CI job, which may only read", async () => {
  const { on, permissions, jobs } = await workflow("ci.yml");
  assertEquals(on, { push: { branches: ["main"] }, pull_request: null, workflow_call: null });
  assertEquals(permissions, { contents: "read" });
  const runs = Object.values(jobs).flatMap(({ steps = [] }) => steps.map(({ run }) => run));
  assertEquals(runs.filter((run) => run?.includes(".ci/")), [".ci/run"]);
});

Deno.test("issue templates: each asks by fields that GitHub knows, with their own names", async () => {
  const folder = join(ROOT, ".github/ISSUE_TEMPLATE");
  for (const file of ["bug.yml", "feature.yml"]) {
    const { name, description, body } = parse(await Deno.readTextFile(join(folder, file)));
    assertEquals([typeof name, typeof description], ["string", "string"], file);
    const fields: { type: string; id?: string; attributes: Record<string, unknown> }[] = body;
    assertEquals(fields.filter(({ type }) => !["markdown", "textarea"].includes(type)), []);
    const asked = fields.filter(({ type }) => type !== "markdown");
    assertEquals(asked.every(({ attributes }) => typeof attributes["label"] === "string"), true);
    assertEquals(new Set(asked.map(({ id }) => id)).size, asked.length);
  }
});

Deno.test("release.yml: only a tag publishes, after CI, the tests of the program, the smoke tests and the images", async () => {
  const { permissions, jobs } = await workflow("release.yml");
  assertEquals(permissions, { contents: "read" });
  assertEquals(jobs["check"]?.uses, "./.github/workflows/ci.yml");
  assertEquals(needed("publish", jobs), ["check", "end_to_end", "image", "programs", "smoke"]);
  const isTag = "github.ref_type == 'tag'";
  assertEquals(jobs["publish"]?.if, isTag);
  for (const [name, { steps = [], permissions = {} }] of Object.entries(jobs)) {
    const writing = Object.values(permissions).includes("write");
    assertEquals([name, writing], [name, ["image", "publish"].includes(name)]);
    const publishing = steps.filter(({ run = "" }) => /docker push|gh release|imagetools create/.test(run));
    if (name !== "publish") assertEquals(publishing.filter((step) => step.if !== isTag), []);
  }
});

Deno.test("release.yml: its commands are those of the project, with the Deno that the CI uses", async () => {
  const { jobs } = await workflow("release.yml");
  const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const [, release = ""] = /deno@(\S+)/.exec(await Deno.readTextFile(join(ROOT, ".ci/run"))) ?? [];
  const run = Object.values(jobs).flatMap(({ steps = [] }) => steps.flatMap(({ run = [] }) => run)).join(
    "\n",
  );
  const called = [...run.matchAll(DENO)].map(([, deno = "", task = ""]) => [deno, task in tasks]);
  assertEquals(called, [[release, true], [release, true]]);
  for (const script of new Set(run.match(/\.ci\/\w+/g))) {
    assertEquals(((await Deno.stat(join(ROOT, script))).mode ?? 0) & 0o111, 0o111, script);
  }
  const targets = jobs["smoke"]?.strategy?.matrix.include.map(({ target }) => target) ?? [];
  assertEquals(targets.filter((target) => !TARGETS.some((known) => known === target)), []);
  assertEquals(targets.filter((target) => target?.endsWith("darwin")).length, 2);
});

interface Workflow {
  readonly on: unknown;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

async function workflow(file: string): Promise<Workflow> {
  return parse(await Deno.readTextFile(join(FOLDER, file)));
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
