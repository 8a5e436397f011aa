import { assertEquals, assertMatch } from "#assert";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { SHOULD_RATE_LIMIT } from "../../harness/grpc_client.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs, requireTool } from "../../harness/tools.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const RULES = {
  "shop.yaml":
    "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: day, requests_per_unit: 1000000}\n",
};

async function run(command: string, args: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command(command, { args: [...args], stdin: "null" }).output();
  return new TextDecoder().decode(stdout);
}

for (const GRPC_ENGINE of ["grpc-js", "native"]) {
  Deno.test({
    ...needs(["h2load"], `${GRPC_ENGINE}: every call of h2load is answered and counted`),
    async fn() {
      await using weir = await ServeFixture.start({ rules: RULES, env: { GRPC_ENGINE } });
      const body = await Deno.makeTempFile();
      const message = encodeRateLimitRequest({
        domain: "shop",
        descriptors: [{ entries: [{ key: "user", value: "h2load" }] }],
      });
      await Deno.writeFile(body, new Uint8Array([0, 0, 0, 0, message.length, ...message]));
      const headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"];
      const load = ["-n", "2000", "-c", "4", "-m", "16", "-d", body, ...headers];
      const summary = await run(requireTool("h2load"), [
        ...load,
        `http://${weir.running.addresses.grpc}${SHOULD_RATE_LIMIT}`,
      ]);
      await Deno.remove(body);
      assertMatch(summary, /2000 succeeded, 0 failed, 0 errored, 0 timeout/);
      assertEquals((await weir.stats())["ratelimit.service.rate_limit.shop.user.total_hits"], 2_000);
    },
  });
}

Deno.test({
  ...needs(["curl"], "native: curl gets an error, since this is no page"),
  async fn() {
    await using weir = await ServeFixture.start({ rules: RULES, env: { GRPC_ENGINE: "native" } });
    const answer = await run(requireTool("curl"), [
      "-s",
      "--http2-prior-knowledge",
      "-i",
      `http://${weir.running.addresses.grpc}/`,
    ]);
    assertMatch(answer, /^HTTP\/2 415/);
    assertMatch(answer, /This port takes gRPC/);
  },
});
