import { assertEquals } from "#assert";
import type {
  Assignment,
  QuotaActions,
  QuotaClient,
  QuotaReport,
  QuotaStreams,
} from "../../../src/quota/quota_stream.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { QuotaEnvoy, rateOf } from "../../harness/quota_envoy.ts";

const ENTRIES = [{ key: "k", value: "v" }];
const TEN: Assignment = {
  kind: "tokens",
  maxTokens: 10,
  tokens: 10,
  fillSeconds: 1,
  fillNanos: 0,
  seconds: 12,
};

/** A server that notes what clients do. */
class Recorder implements QuotaStreams {
  readonly reports: QuotaReport[] = [];
  readonly clients: QuotaClient[] = [];

  /** The way to a client. */
  to(index: number): QuotaActions | undefined {
    return this.clients[index]?.actions;
  }

  open(client: QuotaClient) {
    this.clients.push(client);
    const report = (one: QuotaReport) => {
      this.reports.push(one);
      return Promise.resolve();
    };
    return { now: () => 0, report, end: () => {} };
  }

  counts(): number[][] {
    return this.reports.splice(0).map(({ usages }) =>
      [...usages].flatMap(({ allowed, denied, elapsedSeconds }) => [allowed, denied, elapsedSeconds])
    );
  }
}

Deno.test("a model of Envoy reports a first request immediately and then every five seconds, within its assignment", () => {
  const clock = new FakeClock();
  const server = new Recorder();
  const envoy = new QuotaEnvoy({ clock, domain: "d", delay: () => 1_000 });
  envoy.connect(server);
  envoy.demand("b", ENTRIES, 20);
  clock.advance(1_000);
  assertEquals(server.counts(), [[1, 0, 0]]);
  clock.advance(5_000);
  assertEquals(server.counts(), [[100, 0, 5]]);
  server.to(0)?.send("b", TEN);
  clock.advance(5_000);
  assertEquals(server.counts(), [[70, 30, 5]]);
  assertEquals([rateOf(TEN), envoy.tokensPerSecond(), envoy.refusedPerSecond()], [10, 10, 10]);
  clock.advance(8_000);
  assertEquals([envoy.inForce("b"), envoy.refusedPerSecond()], [undefined, 0]);
});

Deno.test("a model of Envoy loses what is on its way when its stream breaks, and keeps its assignment", () => {
  const clock = new FakeClock();
  const server = new Recorder();
  const envoy = new QuotaEnvoy({ clock, domain: "d", name: "e", delay: () => 500 });
  envoy.connect(server);
  envoy.demand("b", ENTRIES, 1);
  server.to(0)?.send("b", TEN);
  clock.advance(500);
  server.to(0)?.send("b", { kind: "deny", seconds: 12 });
  clock.advance(400);
  envoy.disconnect();
  clock.advance(1_000);
  assertEquals([envoy.inForce("b"), server.clients[0]?.name], [TEN, "e"]);
  envoy.connect(server);
  server.clients[1]?.end({ code: "UNAVAILABLE", message: "full" });
  envoy.kill();
  assertEquals([envoy.tokensPerSecond(), envoy.refusals.map((one) => one?.code)], [0, ["UNAVAILABLE"]]);
});
