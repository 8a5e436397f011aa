import { assertEquals, assertMatch } from "#assert";
import {
  type KvScript,
  type McScript,
  startScriptedKv,
  startScriptedMc,
} from "../../harness/scripted_cache.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";

const RULES = {
  "a.yaml": "domain: a\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 2 }\n",
};
const CALL = { domain: "a", descriptors: [{ entries: [{ key: "k", value: "v" }] }] };
const COUNTED = [200, 200, 429];
const REFUSED = [503, 503, 503];
const UNKNOWN = "-ERR unknown command\r\n";

/** Closes the connection, as twemproxy does at a command that it does not know. */
const closes: KvScript = (_, socket) => void socket.destroy();

/** Counts like a server that knows no other commands; `other` is what becomes of them. */
function counting(other: KvScript = closes): KvScript {
  const counts = new Map<string, number>();
  return (command, socket) => {
    const [name = "", key = "", addend = ""] = command;
    if (name === "EXPIRE") return `:${counts.has(key) ? 1 : 0}\r\n`;
    if (name !== "INCRBY") return other(command, socket);
    const count = (counts.get(key) ?? 0) + Number(addend);
    counts.set(key, count);
    return `:${count}\r\n`;
  };
}

interface Decisions {
  readonly name: string;
  readonly statuses: readonly number[];
  /** In the log, where a server is used although its state is unknown, or why it is not used. */
  readonly log: RegExp;
}

interface KvCase extends Decisions {
  readonly info: KvScript;
  /** Handling of INCRBY and EXPIRE, and of other commands; counts and closes when absent. */
  readonly script?: KvScript;
  readonly env?: Readonly<Record<string, string>>;
}

const PROBED = /The key-value cache does not report its state; counting without it/;

const KV_CASES: readonly KvCase[] = [
  { name: "does not know INFO", info: () => UNKNOWN, statuses: COUNTED, log: PROBED },
  {
    name: "does not know INFO, in the words of Envoy",
    info: () => "-invalid request\r\n",
    statuses: COUNTED,
    log: PROBED,
  },
  { name: "does not allow INFO", info: () => "-NOPERM no\r\n", statuses: COUNTED, log: PROBED },
  { name: "closes at INFO", info: closes, statuses: COUNTED, log: PROBED },
  {
    name: "resets at INFO",
    info: (_, socket) => void socket.resetAndDestroy(),
    statuses: COUNTED,
    log: PROBED,
  },
  {
    name: "closes at INFO, with a login",
    info: closes,
    script: counting(([name]) => name === "AUTH" ? "+OK\r\n" : undefined),
    env: { KV_AUTH: "word" },
    statuses: COUNTED,
    log: PROBED,
  },
  {
    name: "closes at every command",
    info: closes,
    script: closes,
    statuses: REFUSED,
    log: /Cannot reach the key-value cache/,
  },
  {
    name: "refuses the login",
    info: () => UNKNOWN,
    script: counting(() => UNKNOWN),
    env: { KV_AUTH: "word" },
    statuses: REFUSED,
    log: /Cannot reach the key-value cache.*unknown command/,
  },
  {
    name: "requires a login",
    info: () => "-NOAUTH Authentication required.\r\n",
    statuses: REFUSED,
    log: /Cannot reach the key-value cache.*NOAUTH/,
  },
  {
    name: "is loading",
    info: () => "$9\r\nloading:1\r\n",
    statuses: REFUSED,
    log: /Cannot reach the key-value cache.*loading its data/,
  },
  {
    name: "does not know INFO and is loading",
    info: () => UNKNOWN,
    script: () => "-LOADING Redis is loading the dataset in memory\r\n",
    statuses: REFUSED,
    log: /Cannot reach the key-value cache.*LOADING/,
  },
  {
    name: "closes at INFO and is a replica",
    info: closes,
    script: () => "-READONLY You can't write against a read only replica.\r\n",
    statuses: REFUSED,
    log: /Cannot reach the key-value cache/,
  },
];

/** Decides three times: where a decision counts, once it does. */
async function decide(env: Readonly<Record<string, string>>, { statuses, log }: Decisions): Promise<void> {
  await using weir = await ServeFixture.start({ env, rules: RULES });
  const shown = () => weir.log.filter((line) => log.test(line));
  await until("the log line", () => shown().length > 0);
  const got: number[] = [];
  for (const _ of statuses) got.push((await weir.ask(CALL)).status);
  assertEquals(got, statuses, weir.log.join("\n"));
  assertMatch(shown()[0] ?? "", log);
  if (statuses !== COUNTED) return;
  const warnings = weir.log.filter((line) =>
    line.includes("level=warning") && !line.includes("MC_KEY_DIGEST")
  );
  if (env["BACKEND_TYPE"] === "kv") assertEquals(warnings, shown(), "that is the only warning");
  assertEquals(shown().length, 1, "it is logged once");
}

for (const { info, script = counting(), env = {}, ...decisions } of KV_CASES) {
  Deno.test(`kv behind a proxy: a server that ${decisions.name}`, async () => {
    await using server = await startScriptedKv(script, info);
    await decide({ BACKEND_TYPE: "kv", KV_URL: server.url, KV_POOL_SIZE: "3", ...env }, decisions);
  });
}

interface McCase extends Decisions {
  readonly version: McScript;
  /** Handling of `get`; nothing is stored when absent. */
  readonly get?: McScript;
}

const MC_PROBED = /The memcached-style cache does not report its state; counting without it/;
const mcCloses: McScript = (_, socket) => void socket.destroy();

const MC_CASES: readonly McCase[] = [
  { name: "does not know version", version: () => "ERROR\r\n", statuses: COUNTED, log: MC_PROBED },
  { name: "closes at version", version: mcCloses, statuses: COUNTED, log: MC_PROBED },
  {
    name: "closes at version, with a node away",
    version: mcCloses,
    get: () => "SERVER_ERROR Host is down\r\n",
    statuses: COUNTED,
    log: MC_PROBED,
  },
  {
    name: "closes at every command",
    version: mcCloses,
    get: mcCloses,
    statuses: REFUSED,
    log: /Cannot reach the memcached-style cache/,
  },
  {
    name: "has too many connections",
    version: (_, socket) => void socket.end("ERROR Too many open connections\r\n"),
    get: mcCloses,
    statuses: REFUSED,
    log: /Cannot reach the memcached-style cache.*Too many open connections/,
  },
];

for (const { version, get = () => "END\r\n", ...decisions } of MC_CASES) {
  Deno.test(`memcached behind a proxy: a server that ${decisions.name}`, async () => {
    await using server = await startScriptedMc(countingMc(get), version);
    await decide({ BACKEND_TYPE: "mc", MC_HOST_PORT: server.url, MC_KEY_DIGEST: "true" }, decisions);
  });
}

/** Makes each counter at 0 unless it exists, and raises it. */
function countingMc(get: McScript): McScript {
  const counts = new Map<string, number>();
  return (line, socket) => {
    const [name, key = "", by] = line.split(" ");
    if (name === "get") return get(line, socket);
    if (name === "add") {
      const isNew = !counts.has(key);
      if (isNew) counts.set(key, 0);
      return isNew ? "STORED\r\n" : "NOT_STORED\r\n";
    }
    if (name !== "incr") return undefined;
    counts.set(key, (counts.get(key) ?? 0) + Number(by));
    return `${counts.get(key)}\r\n`;
  };
}
