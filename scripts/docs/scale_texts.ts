/** The start of docs/scale.md. */
export const SCALE_HEAD = `# Scale

This page shows which resources grow with calls, keys, rules, instances, connections, events and endpoints, and
computes installations of up to 1,000,000 decisions/s and 10,000 events/s from measured costs.
[Performance](performance.md) shows the speed of one process, and
[Size a machine](operations.md#size-a-machine) how to measure yours.

The costs are measured on two cores that all processes share, and larger installations are computed. Each
formula is next to its result, so that you can insert your own numbers. Two runs with other numbers than those
of the costs [check the formulas](#checked-by-two-runs).`;

/** The text before the costs. */
export const COSTS_TEXT = `## Costs

Commands to redis that are ready at the same moment share a batch: one write, one read. A batch costs more than
a command, so the cost of a call depends on the number of commands in a batch. Both costs come from two loads on a
cluster of one node, with large and with small batches. To see yours, divide \`total_commands_processed\` by
\`total_reads_processed\` of \`redis-cli info stats\`.`;

/** The text before the formulas of decisions. */
export const DECISIONS_TEXT = `## Decisions

A thread is an instance, or one of its [\`WORKERS\`](settings.md). Each call has one limit; with several limits,
multiply the commands, the keys and the memory.`;

/** Advice for decisions, by size. */
export const DECISION_ADVICE = `### Actions by size

- **Up to 10,000 calls/s**: one process with \`BACKEND_TYPE=memory\`, or two processes and one redis-server
  for availability. Nothing needs tuning.
- **Up to 100,000 calls/s**: several instances behind a load balancer that distributes connections, and one
  redis-server or a small [cluster](cache.md#cluster). Set [\`KV_POOL_SIZE\`](settings.md) to 2 to 4: while
  all connections wait for replies, hits gather in the next batch, so fewer connections make larger batches.
  Lower \`EXPIRATION_JITTER_MAX_SECONDS\`: with the default of 300 s, counters of short windows are stored
  much longer than their window.
- **Up to 1,000,000 calls/s**: run as few threads as the CPU allows, with one of the
  [\`WORKERS\`](operations.md#use-several-cores) for each core. Each thread opens its own connections to each
  node and sends its own EXPIRE for each counter, so connections, EXPIRE commands and batches grow with the
  threads. Set \`KV_PIPELINE_WINDOW\` to \`2ms\` if the proxy can wait for it: the batches grow, and each
  thread then sends at most 500/s to a node. Keep the nodes few and large for the same reason.
  Give each node a replica for failover; Weir uses the primaries only.
- **Beyond**: use [quotas](#quotas) for the limits with the highest rates.

### What to shard first

1. **Limits per second**: move them to a second cache with
   [\`KV_PERSECOND\`](cache.md#per-second-cache). They have the most increments and the shortest lives.
2. **Domains**: the key of a counter begins with its domain, so domains share nothing. Give a domain with much
   traffic its own instances and its own redis cluster.
3. **Slots**: a cluster distributes its slots by the hash of the whole key, which spreads the counters of a rule
   over all nodes. Add nodes and move slots; Weir follows the redirections.

### Hot keys

A key is in one slot, and a slot on one node: more nodes do not help a hot key. Weir does: hits of one batch on
the same counter become one INCRBY with their sum, so the node gets at most one for each batch of a thread,
however many calls there are. With [\`LOCAL_CACHE_SIZE_IN_BYTES\`](cache.md#local-cache), a key over its limit
costs no command at all until its window ends.

### EXPIRE commands

A thread sends EXPIRE with its first increment of a counter in a window, and remembers 200,000 counters of each
node. While a window has fewer, the number of EXPIRE commands is at most the number of threads times that of the
keys. With more keys, or keys that are called once a window, there can be one for each call, which doubles the
commands.

### Quotas

With [quotas](quotas.md), Envoy decides by itself and reports each bucket every five seconds. The cost grows
with Envoys and buckets, and no longer with calls: requests cause no command to redis, and a hot key is one
bucket. A limit becomes a rate, and a change of the load moves the shares only after some seconds.

### Rules and client connections

The time of a decision hardly depends on the number of rules; their memory and the time of a load do. Each client
connection costs memory and a file descriptor: see [Performance](performance.md#size).`;

/** The text before the formulas of events. */
export const EVENTS_TEXT = `## Events

Each delivery has one attempt; a failed attempt adds a row and updates. A shard is a database with its own
instances. The rate of a database is that of two cores which PostgreSQL, one instance, the sender and the receiver
share, so machines for each of them require fewer shards. Transactions are those of busy instances, which
[share them](webhooks/storage.md#shared-transactions). Sizes include dead rows, whose space a vacuum makes usable
again. The CPU of an event depends on the number of calls in a transaction, so the table uses the measured rate
of a database instead.`;

/** Advice for events, by size. */
export const EVENT_ADVICE = `### Actions by number of events

- **Up to 100 events/s**: one instance and a [file](webhooks/storage.md#a-file), or two instances and
  PostgreSQL for availability. Set [\`WEBHOOK_RETENTION\`](settings.md) to the days that you need: the size
  grows with it.
- **Up to 1,000 events/s**: PostgreSQL on its own machine with a fast disk for the WAL, and two or three
  instances. Run [autovacuum](webhooks/storage.md#vacuum) earlier on the tables that change most.
- **Up to 10,000 events/s**: several shards. Give each shard its own database, instances and address, and let
  the sender choose the shard by customer. Endpoints, keys and idempotency belong to one shard, so an event
  and its endpoints must be in the same one.

### PostgreSQL

- **Partitions**: Weir does not partition its tables. Retention deletes finished rows one by one, which costs
  WAL and leaves dead rows; the table contains this cost. Do not partition \`event\`, \`delivery\` or
  \`attempt\` by time yourself: PostgreSQL requires the time in each unique key, and the keys of Weir are
  identifiers. If one database is too large, shorten the retention, then shard.
- **Size**: [\`WEBHOOK_STORE_MAX_BYTES\`](settings.md) is 1.1 TB by default. Raise it above the size of a database,
  or shorten the retention; above it, Weir refuses events.
- **Vacuum**: autovacuum must remove as many dead rows as the table shows. Its default cost limit of 200 in 2 ms
  lets all its workers together change at most 5,000 pages/s. Set \`autovacuum_vacuum_cost_delay\` to 0 if
  PostgreSQL has its own machine, and raise \`autovacuum_freeze_max_age\`: the table shows how soon PostgreSQL
  freezes rows. Avoid long transactions.
- **WAL**: the WAL of the table has no images of whole pages, which PostgreSQL adds after each checkpoint. Raise
  \`max_wal_size\` and \`checkpoint_timeout\`, so that checkpoints are rare, and set \`wal_compression\`.
- **Replicas**: Weir reads and writes on the primary only. A replica serves failover, backups and reports, and its
  network must carry the WAL. A synchronous one adds its round trip to each transaction.
- **Connections**: lower [\`WEBHOOK_STORE_POOL_SIZE\`](settings.md) as you add instances, so that the sum stays
  below \`max_connections\`, which is 100 by default.
- **Endpoints**: an endpoint that does not respond collects open deliveries until
  [its backlog](webhooks/storage.md#the-backlog-of-an-endpoint-is-full) is full; then all events for it are
  refused. Set \`WEBHOOK_MAX_BACKLOG\` to the hours that you allow times the events of an hour.`;

/** The text before the checks. */
export const CHECKS_TEXT = `## Checked by two runs

The costs come from runs with one instance. These runs have other numbers of instances, nodes, keys, connections,
events and endpoints, and the same costs predict them. Of the run itself, the predictions of CPU use the number
of batches.`;

/** The end of docs/scale.md. */
export const SCALE_METHOD = `## Repeat the measurement

\`\`\`sh on=time
deno run -A scripts/bench/scale.ts
deno run -A scripts/docs.ts
\`\`\`

The first command measures the costs and the two runs and writes
[scale.json](../scripts/bench/results/scale.json); the second one generates this page. Costs in seconds of
a core depend on the machine and on its other programs; commands, bytes, rows and connections do not.`;
