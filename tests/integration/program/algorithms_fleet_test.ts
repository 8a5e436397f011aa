import { assertEquals } from "#assert";
import { decodeRateLimitResponse, encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { GrpcClient, SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { sharedRedis } from "../../harness/shared_servers.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir, type WeirProcess } from "../../harness/weir_process.ts";

const LIMIT = 100;
const CALLS = 10_000;
const IN_FLIGHT = 32;
const SECOND_MS = 1_000;
const RULES = {
  "fleet.yaml": `domain: fleet
descriptors:
- {key: fixed, rate_limit: {unit: second, requests_per_unit: ${LIMIT}}}
- {key: sliding, rate_limit: {unit: second, requests_per_unit: ${LIMIT}, algorithm: sliding_window}}
`,
};

const shared = await sharedRedis();

/** When a call that passed was made and when its answer came: it was counted in between. */
interface Passed {
  readonly from: number;
  readonly to: number;
}

/** Makes calls to all processes until there were enough; `during` gets their number so far. */
async function callsThatPass(
  fleet: readonly { weir: WeirProcess }[],
  key: string,
  during: (calls: number) => void = () => {},
): Promise<Passed[]> {
  const request = encodeRateLimitRequest({
    domain: "fleet",
    descriptors: [{ entries: [{ key, value: "v" }] }],
  });
  const passed: Passed[] = [];
  let calls = 0;
  const callOne = async (client: GrpcClient) => {
    const from = performance.now();
    const { code, messages: [message] } = await client.unary(SHOULD_RATE_LIMIT, request);
    if (code !== 0 || message === undefined) return false;
    during(++calls);
    const isOk = decodeRateLimitResponse(message).overallCode === 1;
    if (isOk) passed.push({ from, to: performance.now() });
    return true;
  };
  const callMany = async (member: { readonly weir: WeirProcess }) => {
    while (calls < CALLS) {
      const { weir } = member;
      using client = new GrpcClient(weir.grpcAddress);
      let isAlive = true;
      const work = async () => {
        while (isAlive && calls < CALLS) isAlive = await callOne(client) && isAlive;
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, work));
      // It was killed; another process takes its place.
      await until("the process to be replaced", () => calls >= CALLS || member.weir !== weir);
    }
  };
  await Promise.all(fleet.map(callMany));
  return passed;
}

/** Most calls of a record that were certainly counted within one second. */
function mostInSecond(passed: readonly Passed[]): number {
  return Math.max(
    0,
    ...passed.map(({ from }) => {
      return passed.filter((one) => one.from >= from && one.to < from + SECOND_MS).length;
    }),
  );
}

Deno.test({
  ...needs(
    ["redis-server"],
    "a fleet never passes more than a sliding window's limit in any second, and twice a fixed one",
  ),
  async fn() {
    await using redis = await shared.database();
    await using owned = new AsyncDisposableStack();
    const start = async () => {
      // A call that fails is taken for the end of its process.
      const env = { BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: "1m" };
      return owned.use(await startWeir({ env, rules: RULES, waitFor: ["gRPC"] }));
    };
    const fleet = await Promise.all([1, 2, 3].map(async () => ({ weir: await start() })));
    await until("a fixed window lets more than one and a half times its limit pass in a second", async () => {
      return mostInSecond(await callsThatPass(fleet, "fixed")) > 1.5 * LIMIT;
    });
    let replaced: Promise<void> | undefined;
    const replace = async ([, , third] = fleet) => {
      if (third === undefined) return;
      await third.weir.kill();
      third.weir = await start();
    };
    const passed = await callsThatPass(fleet, "sliding", (calls) => {
      if (calls > CALLS / 3) replaced ??= replace();
    });
    await replaced;
    const most = mostInSecond(passed);
    assertEquals([passed.length > LIMIT / 2, most <= LIMIT], [true, true], `${most} passed within a second`);
  },
});
