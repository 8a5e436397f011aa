import { assertEquals } from "#assert";
import { dirname, join } from "node:path";
import config from "../../deno.json" with { type: "json" };
import { SERVE_FLAGS } from "../../scripts/serve_flags.ts";
import { ChildProcess } from "../harness/child_process.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import { deployPath, deployText, deployTree, dockerInstructions } from "../harness/deploy_files.ts";
import { runDeployTool } from "../harness/deploy_tools.ts";
import { needs } from "../harness/tools.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const SOURCES = "/opt/weir";
const RELEASE = "2.9.3";

Deno.test({
  ...needs(["dockerfile-utils"], "Dockerfile: nothing is wrong with its instructions"),
  async fn() {
    assertEquals(await runDeployTool("dockerfile-utils", ["lint", deployPath("Dockerfile")]), {
      code: 0,
      text: "",
    });
  },
});

Deno.test("the image has the pinned Deno, a user that is not root, a volume and a command", async () => {
  const lines = await dockerInstructions();
  const last = lines.findLastIndex((line) => line.startsWith("FROM "));
  const wanted = ["USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"];
  const seen = lines.slice(last).filter((line) => wanted.includes(line.split(" ")[0] ?? ""));
  assertEquals(seen, [
    "USER 65532:65532",
    "VOLUME /var/lib/weir",
    "EXPOSE 8080 8081 6070 9090",
    "STOPSIGNAL SIGTERM",
    'ENTRYPOINT ["weir"]',
    'CMD ["serve"]',
  ]);
  assertEquals(lines.filter((line) => line.includes(`deno@${RELEASE} `)).length, 1);
});

Deno.test("the image has the labels of its version, license and sources", async () => {
  const label = (await dockerInstructions()).find((line) => line.startsWith("LABEL ")) ?? "";
  const pairs = label.matchAll(/ org\.opencontainers\.image\.([a-z.]+)="([^"]*)"/g);
  const labels = Object.fromEntries(Array.from(pairs, ([, name = "", value]) => [name, value]));
  const base = (await dockerInstructions()).findLast((line) => line.startsWith("FROM "))?.split(" ")[1];
  const { title, description, ...others } = labels;
  assertEquals([title, description === ""], ["Weir", false]);
  assertEquals(others, {
    licenses: config.license,
    version: config.version,
    revision: "$REVISION",
    source: "$SOURCE",
    "base.name": `docker.io/library/${base}`,
  });
});

Deno.test("the image is built from what is there, and the rest is kept away from Docker", async () => {
  const copied = (await dockerInstructions())
    .filter((line) => line.startsWith("COPY ") && !line.includes("--from="))
    .flatMap((line) => line.split(" ").slice(1, -1).filter((word) => !word.startsWith("--")));
  const kept = (await deployText("Dockerfile.dockerignore")).split("\n").filter((line) => /^!/.test(line));
  assertEquals(kept.map((line) => line.slice(1)).toSorted(), copied.toSorted());
  await Promise.all(copied.map((path) => Deno.stat(join(ROOT, path))));
});

Deno.test("the image has every module that Weir consists of", async () => {
  const copied = (await deployText("Dockerfile.dockerignore")).split("\n")
    .flatMap((line) => line.startsWith("!") ? [`file://${ROOT}${line.slice(1)}`] : []);
  await using info = new ChildProcess(Deno.execPath(), { args: ["info", "--json", `${ROOT}main.ts`] });
  await info.exited;
  const { modules }: { modules: { specifier: string }[] } = JSON.parse(info.stdoutLines.join("\n"));
  const local = modules.map(({ specifier }) => specifier).filter((specifier) =>
    specifier.startsWith("file:")
  );
  assertEquals(local.length > 100, true);
  assertEquals(
    local.filter((file) => !copied.some((path) => file === path || file.startsWith(`${path}/`))),
    [],
  );
});

Deno.test("weir.sh is executable, and fetches nothing", async () => {
  const { mode } = await Deno.stat(deployPath("weir.sh"));
  assertEquals((mode ?? 0) & 0o111, 0o111);
  const command = (await deployText("weir.sh")).replace(/\\\n/g, "").split("\n")
    .find((line) => line.startsWith("exec ")) ?? "";
  const words = command.split(/\s+/);
  assertEquals(words, [
    "exec",
    "deno",
    "run",
    "--cached-only",
    ...SERVE_FLAGS,
    `${SOURCES}/main.ts`,
    '"$@"',
  ]);
});

/** The places of health checks: the image, and compose. */
const HEALTH_CHECKS: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  async "the image"() {
    const instruction = (await dockerInstructions()).find((line) => line.startsWith("HEALTHCHECK ")) ?? "";
    return JSON.parse(instruction.slice(instruction.indexOf("[")));
  },
  async "compose.yaml"() {
    const { test = [] } = (await deployTree("compose.yaml")).services?.weir?.healthcheck ?? {};
    const [kind, ...words] = Object.values(test).map(String);
    assertEquals(kind, "CMD");
    return words;
  },
};

Deno.test("the health checks are good while Weir answers, and bad when it does not", async () => {
  await using command = await installedCommand();
  await using weir = await ServeFixture.start();
  const [, port = ""] = /:(\d+)$/.exec(weir.running.addresses.http) ?? [];
  const codes = async () => {
    const all = Object.entries(HEALTH_CHECKS).map(async ([where, wordsOf]) => {
      const [program = "", ...args] = await wordsOf();
      assertEquals(program, "weir");
      await using asking = new ChildProcess(command.path, { args, env: { ...command.env, PORT: port } });
      return [where, (await asking.exited).code];
    });
    return Object.fromEntries(await Promise.all(all));
  };
  const good = await codes();
  await weir.stop();
  assertEquals([good, await codes()], [{ "the image": 0, "compose.yaml": 0 }, {
    "the image": 1,
    "compose.yaml": 1,
  }]);
});

/** The command as it is installed, but with the sources and the Deno of this test. */
async function installedCommand(): Promise<{ path: string; env: Record<string, string> } & AsyncDisposable> {
  const folder = await Deno.makeTempDir({ prefix: "weir_command_" });
  const path = join(folder, "weir");
  await Deno.writeTextFile(
    path,
    (await deployText("weir.sh")).replaceAll(`${SOURCES}/main.ts`, `${ROOT}main.ts`),
  );
  await Deno.chmod(path, 0o755);
  await Deno.symlink(Deno.execPath(), join(folder, "deno"));
  const cache = Deno.env.get("DENO_DIR") ?? join(Deno.env.get("HOME") ?? dirname(folder), ".cache", "deno");
  return {
    path,
    env: { PATH: `${folder}:/usr/bin:/bin`, DENO_DIR: cache },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
