import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { runDeployTool } from "../harness/deploy_tools.ts";
import { deployText, type UnitLine, unitLines } from "../harness/deploy_files.ts";
import { needs } from "../harness/tools.ts";

const COMMAND = "/usr/local/bin/weir";
const SANDBOX = "weir-sandbox.conf";
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
      assertEquals(await verify(file, unit), { code: 0, text: "" });
    },
  });

  Deno.test({
    ...needs(["systemd-analyze"], `${file}: systemd finds little that the service could reach`),
    async fn() {
      await using folder = await unitFolder(file, unit);
      const args = ["security", "--offline=true", "--no-pager", `--threshold=${MOST_EXPOSURE}`, folder.path];
      const { code, text } = await runDeployTool("systemd-analyze", args);
      assertMatch(text, /Overall exposure level for weir\S*\.service: \d/);
      assertEquals(code, 0);
    },
  });
}

Deno.test("the unit and its sandbox have what Weir needs, and not what ends V8", async () => {
  const lines = [...await unitLines("weir.service"), ...await unitLines(SANDBOX)];
  const needed = {
    StartLimitIntervalSec: ["0"],
    Type: ["notify"],
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

Deno.test("the template has the lines of the unit but for its own, and both name the command that installs the sandbox", async () => {
  const [one, many] = await Promise.all([unitLines("weir.service"), unitLines("weir@.service")]);
  const common = (lines: readonly UnitLine[]) => lines.filter(({ name }) => !OWN_LINES.includes(name));
  assertEquals(common(many), common(one));
  for (const file of Object.keys(UNITS)) {
    const command = `install -D -m 0644 config/deploy/${SANDBOX} /etc/systemd/system/${file}.d/sandbox.conf`;
    const texts = await Promise.all([deployText(file), deployText(SANDBOX)]);
    assertEquals(texts.map((text) => text.includes(command)), [true, true]);
  }
});

function valuesOf(lines: readonly UnitLine[], wanted: string): string[] {
  return lines.filter(({ name }) => name === wanted).map(({ value }) => value);
}

async function verify(file: string, unit: string): Promise<{ code: number; text: string }> {
  await using folder = await unitFolder(file, unit);
  return await runDeployTool("systemd-analyze", ["verify", "--man=no", folder.path]);
}

/** A folder with the unit, whose command is one that every machine has, and with its sandbox as a drop-in. */
async function unitFolder(file: string, unit: string): Promise<{ path: string } & AsyncDisposable> {
  const folder = await Deno.makeTempDir({ prefix: "weir_unit_" });
  const path = join(folder, unit);
  await Deno.writeTextFile(path, (await deployText(file)).replaceAll(COMMAND, "/bin/true"));
  await Deno.mkdir(join(folder, `${file}.d`));
  await Deno.writeTextFile(join(folder, `${file}.d`, "sandbox.conf"), await deployText(SANDBOX));
  return { path, [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
}
