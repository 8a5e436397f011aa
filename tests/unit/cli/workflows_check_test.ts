import { assertEquals } from "#assert";
import { ranOver } from "../../harness/administration_fixture.ts";

const text = (id: string) => `workflow: ${id}\nsteps:\n- {name: one, set: {}}\n`;
const READS_ENV = "workflow: env\nsteps:\n- {name: one, set: {token: '{{ env.TOKEN }}'}}\n";
const NOT_NAMED =
  "DIR/env.yaml:3:28: steps[0].set.token: the template 'env.TOKEN' reads an environment variable " +
  "that is not in WORKFLOW_ENV; add TOKEN to it\n";
const NO_FILES =
  "DIR: warning: there are no workflow files here; put files *.yaml or *.yml into this folder\n";

interface Case {
  readonly line?: string;
  readonly files: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly code: number;
  readonly stdout: string;
  readonly stderr?: string;
}

const CASES: Readonly<Record<string, Case>> = {
  "valid files": {
    files: { "a.yaml": text("a"), "b.yml": text("b"), ".c.yaml": "[", "d.txt": "[", "e/f.yaml": "[" },
    code: 0,
    stdout: "DIR: valid: 2 files, 2 valid workflows, 0 errors, 0 warnings\n",
  },
  "errors in the order of the files, with their positions": {
    files: {
      "b.yaml": "workflow: b\nsteps:\n- {name: one, sett: {}}\n",
      "a.yaml": "workflow: [a\n",
      "c.yaml": text("x"),
      "d.yaml": text("x"),
    },
    code: 1,
    stdout: "DIR: invalid: 4 files, 1 valid workflow, 4 errors, 0 warnings\n",
    stderr:
      "DIR/a.yaml:2:1: not valid YAML: Flow sequence in block collection must be sufficiently indented and " +
      "end with a ]\n" +
      "DIR/b.yaml:3:3: steps[0]: a step has one of request, limit, set; this one has none\n" +
      "DIR/b.yaml:3:15: steps[0]: unknown key 'sett'; did you mean 'set'?\n" +
      "DIR/d.yaml:1:1: the workflow 'x' is also in DIR/c.yaml; rename one of them\n",
  },
  "a variable that WORKFLOW_ENV does not name": {
    files: { "env.yaml": READS_ENV },
    code: 1,
    stdout: "DIR: invalid: 1 file, 0 valid workflows, 1 error, 0 warnings\n",
    stderr: NOT_NAMED,
  },
  "a variable that it names": {
    files: { "env.yaml": READS_ENV },
    environment: { WORKFLOW_ENV: "OTHER,TOKEN", ADMIN_TOKEN: "not read", BACKEND_TYPE: "none" },
    code: 0,
    stdout: "DIR: valid: 1 file, 1 valid workflow, 0 errors, 0 warnings\n",
  },
  "an empty folder": {
    files: { "note.txt": "" },
    code: 0,
    stdout: "DIR: valid: 0 files, 0 valid workflows, 0 errors, 1 warning\n",
    stderr: NO_FILES,
  },
  "an empty folder, strictly": {
    line: "--strict DIR",
    files: { "note.txt": "" },
    code: 1,
    stdout: "DIR: invalid: 0 files, 0 valid workflows, 0 errors, 1 warning\n",
    stderr: NO_FILES,
  },
  "no folder": {
    line: "DIR/none",
    files: {},
    code: 2,
    stdout: "DIR/none: invalid: 0 files, 0 valid workflows, 1 error, 0 warnings\n",
    stderr:
      'Cannot read the folder of workflows "DIR/none": it does not exist; expected the folder of the workflow files\n',
  },
};

for (const [name, { line = "DIR", files, environment = {}, ...expected }] of Object.entries(CASES)) {
  Deno.test(`workflows check: ${name}`, async () => {
    assertEquals(await ranOver(files, `workflows check ${line}`, { environment }), {
      stderr: "",
      ...expected,
    });
  });
}
