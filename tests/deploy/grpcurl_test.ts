import { assertEquals, assertMatch } from "#assert";
import { documentPages } from "../harness/documents.ts";
import { ExampleSession } from "../harness/example_session.ts";
import { comparable } from "../harness/example_text.ts";
import { ServeFixture } from "../harness/serve_fixture.ts";
import { needs, requireTool } from "../harness/tools.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: day, requests_per_unit: 3}\n",
};
const SHOP = await Deno.readTextFile(new URL("../../config/rules/shop.yaml", import.meta.url));

for (const GRPC_ENGINE of ["native", "grpc-js"]) {
  Deno.test({
    ...needs(
      ["grpcurl"],
      `grpcurl lists, describes and calls ${GRPC_ENGINE} by reflection, without any file`,
    ),
    async fn() {
      await using weir = await ServeFixture.start({ rules: RULES, env: { GRPC_ENGINE } });
      const address = weir.grpcAddress;
      const grpcurl = async (...args: string[]) => {
        const { stdout } = await new Deno.Command(requireTool("grpcurl"), { args: ["-plaintext", ...args] })
          .output();
        return new TextDecoder().decode(stdout);
      };
      assertEquals((await grpcurl(address, "list")).trim().split("\n"), [
        "envoy.service.rate_limit_quota.v3.RateLimitQuotaService",
        "envoy.service.ratelimit.v3.RateLimitService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
      ]);
      const service = "envoy.service.ratelimit.v3.RateLimitService";
      assertMatch(await grpcurl(address, "describe", service), /rpc ShouldRateLimit/);
      const body = JSON.stringify({
        domain: "shop",
        descriptors: [{ entries: [{ key: "user", value: "bob" }] }],
      });
      const answer = JSON.parse(
        await grpcurl("-d", body, address, `${service}/ShouldRateLimit`),
      );
      assertEquals([answer.overallCode, answer.statuses[0].limitRemaining], ["OK", 2]);
    },
  });
}

for (const { path, blocks } of documentPages()) {
  for (const block of blocks) {
    if (!block.marks.includes("grpcurl")) continue;
    Deno.test({
      ...needs(["grpcurl"], `${path}:${block.line}: grpcurl prints the output`),
      async fn() {
        await using session = new ExampleSession(SHOP, block.marks);
        assertEquals(comparable(await session.printedBy(block)), comparable(block.text));
      },
    });
  }
}
