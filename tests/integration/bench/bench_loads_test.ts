import { assertEquals } from "#assert";
import { benchLoads } from "../../../scripts/bench/bench_loads.ts";
import { readBenchOptions } from "../../../scripts/bench/options.ts";
import { needs } from "../../harness/tools.ts";

Deno.test({
  ...needs(["redis-server"], "benchLoads: one short round of one load, every sum exact"),
  async fn() {
    const said: string[] = [];
    const { rounds, checks } = await benchLoads({
      options: readBenchOptions(["--quick", "--only", "hot", "--seconds", "0.1", "--engine", "grpc-js"]),
      signal: new AbortController().signal,
      say: (line) => said.push(line),
    });
    const withoutNumbers = [...said, ...checks].map((line) =>
      line.replace(/[\d,.]+(?= calls| ms| =|$)/g, "n")
    );
    assertEquals(withoutNumbers, [
      "round 1: 8x32 hot key on echo: n calls/s, p99 n ms, generator n",
      "round 1: 8x32 hot key on memory: n calls/s, p99 n ms, generator n",
      "round 1: 8x32 hot key on redis: n calls/s, p99 n ms, generator n",
      "redis: a call by grpc-js has status OK and the right answer",
      "redis: hits that /stats says were decided = n = hits answered",
      "memory: a call by grpc-js has status OK and the right answer",
      "memory: hits that /stats says were decided = n = hits answered",
      "echo: a call by grpc-js has status OK and the right answer",
      "redis: sum of all counters = n = hits answered",
    ]);
    const metrics = rounds.map((
      { target, calls, cpuSecondsPer100k },
    ) => [target, calls > 0 && cpuSecondsPer100k > 0]);
    assertEquals(metrics, [["echo", true], ["memory", true], ["redis", true]]);
  },
});
