import { assert } from "#assert";
import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { redisCommand } from "../../harness/redis_command.ts";
import { startRedisSentinel } from "../../harness/redis_sentinel.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { PASSWORDS, type RotatedCache, RotationBed } from "../../harness/rotation_bed.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";

const [FIRST] = PASSWORDS;
/** The user of the caches, next to one without a password for the test. */
const userArgs = ["--user", "weir", "on", `>${FIRST}`, "~*", "&*", "+@all"];
const KILL = ["CLIENT", "KILL", "TYPE", "normal"];
const changed = (password: string) => ["ACL", "SETUSER", "weir", "resetpass", `>${password}`];

/** The files and settings of a cache whose user is in `KV_AUTH_FILE`. */
const userFile = { files: (password: string) => ({ KV_AUTH: `weir:${password}\n` }) };

function ofServers(
  servers: readonly RedisServer[],
  env: Readonly<Record<string, string>>,
): RotatedCache {
  const all = (command: readonly string[]) => Promise.all(servers.map((one) => one.command(...command)));
  return {
    ...userFile,
    env: (file) => ({ ...env, KV_AUTH_FILE: file("KV_AUTH") }),
    change: (password) => all(changed(password)),
    kill: () => all(KILL),
  };
}

/** Each starts servers that `stack` ends. */
const CACHES: Readonly<Record<string, (stack: AsyncDisposableStack) => Promise<RotatedCache>>> = {
  async "the password of a server"(stack) {
    const { port, url } = stack.use(await startRedis({ args: ["--requirepass", FIRST] }));
    let password: string = FIRST;
    const command = (...args: readonly string[]) => redisCommand(args, { port, password });
    return {
      env: (file) => ({ KV_URL: url, KV_AUTH_FILE: file("KV_AUTH") }),
      files: (text) => ({ KV_AUTH: `${text}\n` }),
      async change(next) {
        await command("CONFIG", "SET", "requirepass", next);
        password = next;
      },
      kill: () => command(...KILL),
    };
  },
  async "a user in the address"(stack) {
    const redis = stack.use(await startRedis({ args: userArgs }));
    return {
      ...ofServers([redis], {}),
      env: (file) => ({ KV_URL_FILE: file("KV_URL") }),
      files: (password) => ({ KV_URL: `redis://weir:${password}@${redis.url}/0` }),
    };
  },
  async "another user, which replaces the first"(stack) {
    const redis = stack.use(await startRedis({ args: userArgs }));
    return {
      ...ofServers([redis], { KV_URL: redis.url }),
      files: (password) => ({ KV_AUTH: `${password === FIRST ? "weir" : "weir2"}:${password}` }),
      async change(password) {
        await redis.command("ACL", "SETUSER", "weir2", "on", `>${password}`, "~*", "&*", "+@all");
        await redis.command("ACL", "SETUSER", "weir", "off");
      },
    };
  },
  async "a user of the nodes of a cluster"(stack) {
    const cluster = stack.use(await startRedisCluster({ args: userArgs }));
    return ofServers(cluster.nodes, { KV_TYPE: "cluster", KV_URL: cluster.url });
  },
  async "a user of the primary and one of its sentinels"(stack) {
    const group = stack.use(await startRedisSentinel({ args: userArgs }));
    const onSentinels = (command: readonly string[]) =>
      Promise.all(group.sentinelPorts.map((port) => redisCommand(command, { port })));
    await onSentinels(["ACL", "SETUSER", "weir", "on", `>${FIRST}`, "allcommands", "allchannels"]);
    const servers = ofServers(group.servers, { KV_TYPE: "sentinel", KV_URL: group.url });
    return {
      ...servers,
      env: (file) => ({ ...servers.env(file), KV_SENTINEL_AUTH_FILE: file("SENTINEL") }),
      files: (password) => ({ KV_AUTH: `weir:${password}`, SENTINEL: `weir:${password}` }),
      change: (password) => Promise.all([servers.change(password), onSentinels(changed(password))]),
      kill: () => Promise.all([servers.kill(), onSentinels(KILL)]),
    };
  },
};

for (const [what, start] of Object.entries(CACHES)) {
  test(`cache rotation: ${what} changes on the server first`, start, async (bed) => {
    await bed.change();
    await bed.goesOn();
    await bed.kill();
    await bed.refuses();
    await bed.recovered(bed.write());
    await bed.logs("New credentials accepted");
    await bed.kill();
    await bed.recovered();
    await bed.goesOn();
  });

  test(`cache rotation: ${what} changes in the file first`, start, async (bed) => {
    bed.write();
    await bed.logs("reloaded");
    await bed.goesOn();
    await bed.kill();
    await bed.recovered();
    await bed.logs("New credentials refused; using the former ones");
    await bed.change();
    await bed.goesOn();
    await bed.kill();
    await bed.recovered();
    await bed.logs("New credentials accepted");
    await bed.goesOn();
  });
}

const WORKERS = 2;

test(
  "cache rotation: every thread that decides reads the files, and metrics count a change once",
  async (stack) => {
    const redis = stack.use(await startRedis({ args: userArgs }));
    return ofServers([redis], { KV_URL: redis.url, WORKERS: String(WORKERS) });
  },
  async (bed) => {
    await bed.change();
    await bed.goesOn();
    await bed.kill();
    await bed.refuses();
    await bed.recovered(bed.write());
    await bed.logs("Credentials of KV_AUTH_FILE reloaded", WORKERS);
    await bed.goesOn();
    await eventually(1, async () => (await bed.weir.stats())["ratelimit.kv_pool.credentials_reloaded"]);
  },
);

test(
  "cache rotation: a wrong password is tried with growing waits",
  async (stack) => {
    const redis = stack.use(await startRedis({ args: userArgs }));
    return ofServers([redis], { KV_URL: redis.url });
  },
  async (bed) => {
    const refused = async () => (await bed.weir.stats())["ratelimit.kv_pool.logins_refused"] ?? 0;
    await bed.change();
    await bed.kill();
    await bed.refuses();
    const [before, begin] = [await refused(), bed.elapsedMs];
    await until("four further refusals", async () => await refused() >= before + 4);
    // Waits of 50 to 400 ms, of which half is by chance.
    assert(bed.elapsedMs - begin > 300, "the waits grow");
    await bed.recovered(bed.write());
  },
);

function test(
  name: string,
  start: (stack: AsyncDisposableStack) => Promise<RotatedCache>,
  run: (bed: RotationBed) => Promise<void>,
): void {
  Deno.test({
    ...needs(["redis-server"], name),
    async fn() {
      await using stack = new AsyncDisposableStack();
      const cache = await start(stack);
      await using bed = await RotationBed.open(cache);
      await bed.goesOn();
      await run(bed);
    },
  });
}
