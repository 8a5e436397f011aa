import { assertEquals, assertStringIncludes } from "@std/assert";
import { join } from "node:path";
import { freePort } from "../../harness/free_port.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import {
  compare,
  type Env,
  NOON,
  type SettingCases,
  SHOP,
  shopRequest,
  withFolder,
} from "./settings_case.ts";

const HITS = 'ratelimit_service_rate_limit_total_hits{domain="shop",key1="open"} 1';
const TIME = 'ratelimit_service_response_time_seconds_bucket{grpc_method="ShouldRateLimit",le=';

/** Services under test have no statistics unless they are asked for. */
const PULLED = { DISABLE_STATS: "false", USE_PULL_METRICS: "true" };

/** A mapping file with a counter of its own name. */
const MAPPING = `mappings:
  - match: ratelimit.service.rate_limit.*.*.total_hits
    name: my_$2_hits
    labels: { where: "\${1}" }
`;

/** Tests of the settings of pull metrics. */
export const PULL_CASES: SettingCases = {
  USE_PULL_METRICS: {
    sees: "a port with metrics",
    async run() {
      const address = `127.0.0.1:${freePort()}`;
      await compare({ USE_PULL_METRICS: "true" }, {
        // Without metrics the statistics would be pushed: to where nobody is.
        env: {
          DISABLE_STATS: "false",
          PUSH_STATS_HOST: "127.0.0.1",
          PUSH_STATS_PORT: "1",
          PULL_METRICS_ADDR: address,
        },
        look: () => fetch(`http://${address}/metrics`).then(statusOf, () => 0),
        unset: 0,
        set: 200,
      });
    },
  },
  PULL_METRICS_ADDR: {
    sees: "that port at another address",
    async run() {
      const address = `127.0.0.2:${freePort()}`;
      const env = { ...PULLED, PULL_METRICS_ADDR: address };
      await using service = await ServeFixture.start({ env, rules: SHOP, clock: NOON });
      await service.ask(shopRequest("open=a"));
      assertStringIncludes(await (await fetch(`http://${address}/metrics`)).text(), HITS);
      const local = address.replace("127.0.0.2", "127.0.0.1");
      assertEquals(await fetch(`http://${local}/metrics`).then(statusOf, () => 0), 0);
    },
  },
  PULL_METRICS_PATH: {
    sees: "the metrics under another path",
    run: () =>
      comparePulled({ PULL_METRICS_PATH: "/other" }, {
        async look(address) {
          const paths = ["/metrics", "/other", "/"];
          return await Promise.all(
            paths.map(async (path) => statusOf(await fetch(`http://${address}${path}`))),
          );
        },
        unset: [200, 404, 404],
        set: [404, 200, 404],
      }),
  },
  PULL_METRICS_MAPPER_YAML: {
    sees: "metrics as the file names them, or each mistake in it",
    run: mapsByFile,
  },
  PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: {
    sees: "bounds in milliseconds",
    run: () =>
      comparePulled({ PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS: "true" }, {
        async look(address, service) {
          using client = new GrpcClient(service.running.addresses.grpc);
          await decide(client, "shop", "open=a");
          const lines = await linesOf(address);
          return lines.filter((line) => line.startsWith(TIME)).map((line) => /le="([^"]*)"/.exec(line)?.[1])
            .slice(0, 2);
        },
        unset: ["0.00005", "0.0001"],
        set: ["0.05", "0.1"],
      }),
  },
  PULL_METRICS_NATIVE: {
    sees: "labels from the rules, and their limits",
    run: () =>
      comparePulled({ PULL_METRICS_NATIVE: "true" }, {
        async look(address, service) {
          await service.ask(shopRequest("open=a"));
          const wanted = [
            HITS,
            'ratelimit_rule_hits_total{domain="shop",rule="open",stat="total_hits"} 1',
            'ratelimit_rule_limit{domain="shop",rule="open",unit="day"} 10',
          ];
          const lines = await linesOf(address);
          return wanted.map((line) => lines.includes(line));
        },
        unset: [true, false, false],
        set: [false, true, true],
      }),
  },
};

async function mapsByFile(): Promise<void> {
  await withFolder({ "good.yaml": MAPPING, "bad.yaml": MAPPING.replace("name:", "nam:") }, async (folder) => {
    await comparePulled({ PULL_METRICS_MAPPER_YAML: join(folder, "good.yaml") }, {
      async look(address, service) {
        await service.ask(shopRequest("open=a"));
        const lines = await linesOf(address);
        return [HITS, 'my_open_hits{where="shop"} 1'].map((line) => lines.includes(line));
      },
      unset: [true, false],
      set: [false, true],
    });
    const bad = join(folder, "bad.yaml");
    const env = {
      ...PULLED,
      PULL_METRICS_ADDR: "127.0.0.1:0",
      PULL_METRICS_MAPPER_YAML: bad,
    };
    const started = ServeFixture.start({ env, rules: SHOP, clock: NOON });
    const refused = await started.then((service) => service.stop().then(() => ""), messageOf);
    assertStringIncludes(refused, `${bad}:3:5: mappings[0]: unknown key 'nam'; did you mean 'name'?`);
  });
}

/** The same as `compare`, for two services whose metrics are at the address that `look` is given. */
async function comparePulled<T>(
  changed: Env,
  { look, unset, set }: {
    readonly look: (address: string, service: ServeFixture) => Promise<T>;
    readonly unset: T;
    readonly set: T;
  },
): Promise<void> {
  const address = `127.0.0.1:${freePort()}`;
  const env = { ...PULLED, PULL_METRICS_ADDR: address };
  await compare(changed, { env, look: (service) => look(address, service), unset, set });
}

async function linesOf(address: string): Promise<string[]> {
  return (await (await fetch(`http://${address}/metrics`)).text()).split("\n");
}

async function statusOf(response: Response): Promise<number> {
  await response.body?.cancel();
  return response.status;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
