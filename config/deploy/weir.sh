#!/bin/sh
# The command `weir` where it is run from its sources: install it as /usr/local/bin/weir, beside the `deno` of
# release 2.9.3, with the sources in /opt/weir. The binary of `deno task compile` takes the place of this file, of
# `deno` and of /opt/weir at once; nothing else has to change.
#
# The flags are those of the `serve` task in deno.json. What Weir imports was fetched at installation, by
# `DENO_DIR=/opt/weir/.deno deno cache --frozen main.ts` in /opt/weir, and nothing is fetched later.
export DENO_DIR="${DENO_DIR:-/opt/weir/.deno}"
exec deno run --cached-only --unstable-no-legacy-abort --v8-flags=--no-allocation-site-pretenuring --no-prompt \
  --allow-net --allow-env --allow-read --allow-write \
  --allow-sys=hostname,systemMemoryInfo,loadavg,uid,osRelease,cpus,networkInterfaces,inspector,setPriority \
  /opt/weir/main.ts "$@"
