import { assert, assertEquals } from "#assert";
import denoJson from "../../../deno.json" with { type: "json" };
import { ChildProcess } from "../../harness/child_process.ts";
import { freePort } from "../../harness/free_port.ts";
import { eventually, until } from "../../harness/until.ts";

/** The start task, without the line that Deno prints. */
const args = denoJson.tasks.start.split(" ").slice(1);

Deno.test("the start task prints a decision that fits the rules", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const port = `${freePort()}`;
  const env = {
    PORT: port,
    GRPC_PORT: `${freePort()}`,
    DEBUG_PORT: `${freePort()}`,
    ADMIN_TOKEN: "a-token-of-the-administration-for-tests",
    WEBHOOK_STORE: `${folder}/weir.db`,
    RUNTIME_ROOT: folder,
    RUNTIME_APPDIRECTORY: "rules",
  };
  await Deno.mkdir(`${folder}/rules`);
  await Deno.writeTextFile(
    `${folder}/rules/a.yaml`,
    "domain: o'neil\ndescriptors:\n  - key: a\n    value: bob\n    shadow_mode: true\n    rate_limit: { unit: day, requests_per_unit: 1 }\n" +
      "  - key: path\n    value: /x/*\n    rate_limit: { unit: day, requests_per_unit: 0 }\n",
  );
  const cwd = new URL("../../..", import.meta.url).pathname;
  try {
    await using started = new ChildProcess(Deno.execPath(), {
      args,
      cwd,
      env: { ...Deno.env.toObject(), ...env },
    });
    const command = () => started.stdoutLines.find((line) => line.startsWith("  curl -i ")) ?? "";
    await until("the command", () => command() !== "");
    assert(started.stdoutLines.includes("Request decisions; more than 0 per DAY return 429:"));
    assertEquals(
      command(),
      `  curl -i http://127.0.0.1:${port}/json -d '{"domain":"o'\\''neil","descriptors":[{"entries":[{"key":"path","value":"/x/1"}]}]}'`,
    );
    await started.stop();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the start task binds to loopback, says what is open, and refuses a second one on its ports", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const env = {
    PORT: `${freePort()}`,
    GRPC_PORT: `${freePort()}`,
    DEBUG_PORT: `${freePort()}`,
    ADMIN_TOKEN_FILE: `${folder}/token`,
    WEBHOOK_STORE_FILE: `${folder}/store`,
  };
  const cwd = new URL("../../..", import.meta.url).pathname;
  const unset = { KV_URL: "", BACKEND_TYPE: "", ADMIN_TOKEN: "", WEBHOOK_STORE: "" };
  const childEnv = { ...Deno.env.toObject(), ...unset, ...env };
  try {
    await Deno.writeTextFile(env.ADMIN_TOKEN_FILE, "a-token-of-the-administration-for-tests\n");
    await Deno.writeTextFile(env.WEBHOOK_STORE_FILE, `${folder}/weir.db\n`);
    await using started = new ChildProcess(Deno.execPath(), { args, cwd, env: childEnv });
    await until("the service to be ready", () => started.stdoutLines.includes("Weir is ready."));
    const hosts = () =>
      started.stderrLines.flatMap((line) => /Listening for \w+ on '([^:]+):/.exec(line)?.[1] ?? []);
    // The two streams are read on their own.
    await until("the ports in the log", () => hosts().length >= 3);
    assertEquals(hosts(), ["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
    const opening = "To open it to others, set HOST, GRPC_HOST, DEBUG_HOST to 0.0.0.0.";
    await until("the hint", () => started.stdoutLines.some((line) => line.includes(opening)));
    const { PORT, DEBUG_PORT } = env;
    const lines = [
      `  page      http://127.0.0.1:${DEBUG_PORT}/ui`,
      `  webhooks  http://127.0.0.1:${PORT}/api/v1`,
      `  token     ${env.ADMIN_TOKEN_FILE}`,
      `  rules     shop; from ${cwd}config/rules`,
      "  cache     memory of this process; set KV_URL for redis",
      "Request decisions; more than 5 per MINUTE return 429:",
      `  curl -i http://127.0.0.1:${PORT}/json -d '{"domain":"shop","descriptors":[{"entries":[{"key":"account","value":"bob"}]}]}'`,
      `  curl -H "Authorization: Bearer $(cat '${env.ADMIN_TOKEN_FILE}')" http://127.0.0.1:${PORT}/api/v1/endpoints`,
    ];
    await until("the commands", () => started.stdoutLines.some((line) => line.includes("/endpoints")));
    await eventually(lines, () => started.stdoutLines.filter((line) => lines.includes(line)));
    assertEquals(started.stderrLines.filter((line) => !line.includes("level=info")), []);
    await using second = new ChildProcess(Deno.execPath(), { args, cwd, env: childEnv });
    await until("the second one to end", () => !second.running);
    assertEquals((await second.exited).code, 1);
    for (const [name, port] of Object.entries({ PORT, DEBUG_PORT, GRPC_PORT: env.GRPC_PORT })) {
      const refusal = new RegExp(`127\\.0\\.0\\.1:${port}\\\\" [^;]*; change ${name}; .*LISTEN_SHARED=true`);
      assert(second.stderrLines.some((line) => refusal.test(line)), second.stderrLines.join("\n"));
    }
    assert(!started.stderrLines.some((line) => line.includes("open to other machines")));
    await started.stop();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
