/** The start of docs/performance.md. */
export const PERFORMANCE_HEAD = `# Performance

This page shows how many decisions Weir makes per second, their latency, and the memory and CPU that they
require. The numbers come from \`deno task bench\`. The memory of redis-server, the number of file descriptors
and the disk space of the webhook store are measured separately.
[Quotas](quotas.md#latency-and-times-without-a-quota) shows the latency that the filters of Envoy add to a request.

## Decisions

Weir runs as one process and shares two cores with redis-server and the load generator. The load generator keeps
all cores busy, so the latencies include the queueing time under full load. The row with a constant rate shows the
latency under moderate load. The CPU time covers the server process only.

The echo server is a grpc-js server that returns the bytes of each call and makes no decisions. It is the baseline
for the machine; the bench measures both in turn. The last row uses h2load instead of the load
generator of the bench.`;

/** The section about the number of counters and capacity. */
export const COUNTERS_TEXT = `### Estimate the number of counters

A shared cache stores a counter for its window, plus a random time of up to
\`EXPIRATION_JITTER_MAX_SECONDS\`. Limits with short windows therefore leave many expired counters. For
example, 10,000 callers that each make one call per second create 10,000 counters per second:

| \`EXPIRATION_JITTER_MAX_SECONDS\` | Average lifetime | Counters | Memory of redis-server |
| --- | --- | --- | --- |
| 300 (the default) | 151 s | 1,510,000 | about 200 MB |
| 5 | 3.5 s | 35,000 | about 5 MB |

In memory, Weir deletes a counter when its window ends. [settings.md](settings.md) describes the settings on this
page.

### Add capacity

[observability.md](observability.md) describes these metrics. Add a process, and spread the connections over
all processes, when:

- \`ratelimit.process.event_loop_delay_ms\` is more than a few milliseconds,
- \`ratelimit_server.ShouldRateLimit.response_time\` grows, or
- \`ratelimit.cache.in_flight\` approaches \`MAX_IN_FLIGHT\`.

Raise \`MEMORY_MAX_KEYS\`, or use a shared cache, when \`ratelimit.memory.evicted_keys\` grows. Counters in memory
are not shared: each process counts separately.`;

/** The section about repeating the measurement. */
export const METHOD_TEXT = `## Repeat the measurement

\`\`\`sh on=time
deno task bench
deno run -A scripts/docs.ts
\`\`\`

The first command measures everything and writes \`scripts/bench/results/\`; the second one generates this page.
[scripts/bench/README.md](../scripts/bench/README.md) describes the loads, the checks and the flags.

- The bench checks every response. A run fails if the counters of Weir or of the cache differ from the number of
  responses.
- Compare ratios within one run. Absolute numbers depend on the machine and on its other programs.
- Before you choose the size of a machine, [measure it](operations.md#size-a-machine) with your own rules and keys.`;
