import { assertEquals } from "#assert";
import { parse } from "yaml";
import { startEnvoy, validateEnvoyConfig } from "../harness/envoy.ts";
import { startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import { deployPath, deployText, deployTree } from "../harness/deploy_files.ts";
import { runDeployTool } from "../harness/deploy_tools.ts";

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n  - { key: account, rate_limit: { unit: day, requests_per_unit: 2 } }\n",
};

Deno.test({
  ...needs(["compose-go"], "compose.yaml: the reader of Docker takes it, and mounts what there is"),
  async fn() {
    const { code, text } = await runDeployTool("compose-go", ["-format", "json", deployPath("compose.yaml")]);
    assertEquals([code, text.startsWith("{")], [0, true]);
    const services: Record<string, { volumes?: { type: string; source: string }[] }> =
      JSON.parse(text).services;
    const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes);
    const sources = mounts.filter(({ type }) => type === "bind").map(({ source }) => source);
    const there = await Promise.all(sources.map(async (path) => (await Deno.stat(path)).isDirectory));
    assertEquals([Object.keys(services), there], [
      ["application", "cache", "envoy", "weir"],
      // Envoy's file, and the folders of rules and workflows.
      [false, true, true],
    ]);
  },
});

Deno.test("compose.yaml: all but the Envoy in front have no capability and a read-only root, and only that is open to others", async () => {
  const services = Object.entries((await deployTree("compose.yaml")).services ?? {});
  const seen = services.map(([name, { read_only, cap_drop, security_opt, ports }]) => {
    return { name, read_only, cap_drop, security_opt, ports };
  });
  const locked = { read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] };
  const open = { read_only: undefined, cap_drop: undefined, security_opt: undefined };
  assertEquals(seen, [
    { name: "weir", ...locked, ports: ["127.0.0.1:8080:8080", "127.0.0.1:6070:6070"] },
    { name: "cache", ...locked, ports: undefined },
    { name: "envoy", ...open, ports: ["10000:10000"] },
    { name: "application", ...locked, ports: undefined },
  ] as unknown);
});

Deno.test("compose.yaml: every service runs what its image has, and only Weir runs its image", async () => {
  const services = Object.entries((await deployTree("compose.yaml")).services ?? {});
  const seen = services.map(([name, { image, entrypoint, command }]) => {
    const [program] = Object.values(entrypoint ?? command ?? ["weir"]);
    return [name, String(image).replace(/:.+$/, ""), program];
  });
  assertEquals(seen, [
    ["weir", "localhost/weir", "weir"],
    ["cache", "redis", "redis-server"],
    ["envoy", "envoyproxy/envoy", "envoy"],
    ["application", "envoyproxy/envoy", "envoy"],
  ]);
});

Deno.test({
  ...needs(["envoy"], "envoy-compose.yaml: Envoy finds nothing wrong with it"),
  async fn() {
    assertEquals(await validateEnvoyConfig(await deployTree("envoy-compose.yaml")), "");
  },
});

Deno.test("envoy-compose.yaml is envoy.yaml with the names of services", async () => {
  const alone = await deployTree("envoy.yaml");
  const named = parse(await deployText("envoy-compose.yaml"), (key, value) => {
    return key === "address" && (value === "application" || value === "weir") ? "127.0.0.1" : value;
  });
  assertEquals(named, alone);
  const text = await deployText("envoy-compose.yaml");
  assertEquals(text.match(/address: \w+, port_value: \d+/g), [
    "address: application, port_value: 3000",
    "address: weir, port_value: 8081",
  ]);
});

Deno.test({
  ...needs(
    ["envoy", "redis-server"],
    "compose.yaml: its Envoy, its redis and its application work together with two of its Weir",
  ),
  async fn() {
    const services = (await deployTree("compose.yaml")).services ?? {};
    await using redis = await startRedis({ args: redisArgs(services.cache?.command) });
    const env = { BACKEND_TYPE: "kv", KV_URL: `127.0.0.1:${redis.port}`, CACHE_ON_FAILURE: "local" };
    await using first = await ServeFixture.start({ rules: RULES, env });
    await using second = await ServeFixture.start({ rules: RULES, env });
    const [program = ""] = Object.values(services.application?.command ?? {}).map(String);
    await using application = await startEnvoy(parse(program, alone));
    const port = portOf(application.address("application"));
    const weirs = [first, second].map(({ running }) => endpoint(portOf(running.addresses.grpc)));
    await using envoy = await startEnvoy(await envoyConfig(port, weirs));
    const url = `http://127.0.0.1:${portOf(envoy.address("edge"))}/orders?page=2`;
    const seen = [];
    for (let call = 0; call < 4; call++) {
      const response = await fetch(url, { headers: { "x-account": "bob" } });
      seen.push([response.status, await response.text()]);
    }
    const passed = [200, "GET /orders?page=2\n"];
    assertEquals(seen, [passed, passed, [429, ""], [429, ""]]);
  },
});

/** A listener for this machine alone, on any port. */
function alone(key: unknown, value: unknown): unknown {
  if (key === "port_value") return 0;
  return key === "address" && value === "0.0.0.0" ? "127.0.0.1" : value;
}

/** Envoy's configuration with the ports of the test, and with two instances where compose has a name for both. */
async function envoyConfig(application: number, weirs: readonly object[]): Promise<object> {
  return parse(await deployText("envoy-compose.yaml"), (key, value) => {
    if (key === "port_value") return Number(value) === 3_000 ? application : 0;
    if (key === "address" && value === "application") return "127.0.0.1";
    // A busy machine is no failure.
    if (key === "timeout" || key === "connect_timeout") return "60s";
    return key === "lb_endpoints" && JSON.stringify(value).includes('"weir"') ? weirs : value;
  });
}

function endpoint(port: number): object {
  return { endpoint: { address: { socket_address: { address: "127.0.0.1", port_value: port } } } };
}

/** The arguments behind the name of the program. */
function redisArgs(command: object | undefined): string[] {
  return Object.values(command ?? {}).map(String).slice(1);
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}
