import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { runDeployTool } from "../harness/deploy_tools.ts";
import { deployText, type UnitLine, unitLines } from "../harness/deploy_files.ts";
import { needs } from "../harness/tools.ts";

const COMMAND = "/usr/local/bin/weir";
/** An instance of the template stands for all of them. */
const UNITS = { "weir.service": "weir.service", "weir@.service": "weir@0.service" } as const;
/** The most exposure that `systemd-analyze security` may find, of 100 tenths; a unit without any sandbox has 96. */
const MOST_EXPOSURE = 20;
/** The lines that may differ between the two units. */
const OWN_LINES = ["Description", "Environment", "RuntimeDirectory", "RuntimeDirectoryMode"];

for (const [file, unit] of Object.entries(UNITS)) {
  Deno.test({
    ...needs(["systemd-analyze"], `${file}: systemd finds nothing wrong with it`),
    async fn() {
      const text = await deployText(file);
      assertEquals(await verify(unit, text), { code: 0, text: "" });
    },
  });

  Deno.test({
    ...needs(["systemd-analyze"], `${file}: systemd finds little that the service could reach`),
    async fn() {
      await using folder = await unitFolder(unit, await deployText(file));
      const args = ["security", "--offline=true", "--no-pager", `--threshold=${MOST_EXPOSURE}`, folder.path];
      const { code, text } = await runDeployTool("systemd-analyze", args);
      assertMatch(text, /Overall exposure level for weir\S*\.service: \d/);
      assertEquals(code, 0);
    },
  });
}

Deno.test("the units have what Weir needs in its sandbox, and not what ends V8", async () => {
  const lines = await unitLines("weir.service");
  const needed = {
    ExecStart: [`${COMMAND} serve`],
    DynamicUser: ["yes"],
    User: ["weir"],
    StateDirectory: ["weir"],
    ProtectSystem: ["strict"],
    AmbientCapabilities: [""],
    CapabilityBoundingSet: [""],
    NoNewPrivileges: ["yes"],
    RestrictAddressFamilies: ["AF_INET AF_INET6 AF_UNIX"],
    SystemCallFilter: ["@system-service @pkey"],
    KillSignal: ["SIGTERM"],
    MemoryDenyWriteExecute: [],
    ProcSubset: [],
  };
  const seen = Object.fromEntries(Object.keys(needed).map((name) => [name, valuesOf(lines, name)]));
  assertEquals(seen, needed);
});

Deno.test("the template has the sandbox and the times of the unit", async () => {
  const [one, many] = await Promise.all([unitLines("weir.service"), unitLines("weir@.service")]);
  const common = (lines: readonly UnitLine[]) => lines.filter(({ name }) => !OWN_LINES.includes(name));
  assertEquals(common(many), common(one));
});

function valuesOf(lines: readonly UnitLine[], wanted: string): string[] {
  return lines.filter(({ name }) => name === wanted).map(({ value }) => value);
}

async function verify(unit: string, text: string): Promise<{ code: number; text: string }> {
  await using folder = await unitFolder(unit, text);
  return await runDeployTool("systemd-analyze", ["verify", "--man=no", folder.path]);
}

/** A folder with the unit, whose command is one that every machine has. */
async function unitFolder(unit: string, text: string): Promise<{ path: string } & AsyncDisposable> {
  const folder = await Deno.makeTempDir({ prefix: "weir_unit_" });
  const path = join(folder, unit);
  await Deno.writeTextFile(path, text.replaceAll(COMMAND, "/bin/true"));
  return { path, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}
