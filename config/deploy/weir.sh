#!/bin/sh
# The command `weir` for an installation from sources (docs/install.md). Install it as /usr/local/bin/weir next to Deno
# 2.9 or newer, with the sources in /opt/weir. The binary of `deno task compile` replaces this file, `deno` and /opt/weir.
#
# The flags are those of scripts/serve_flags.ts. All modules were fetched at installation with
# `DENO_DIR=/opt/weir/.deno deno cache --frozen main.ts` in /opt/weir; nothing is fetched later.
export DENO_DIR="${DENO_DIR:-/opt/weir/.deno}"
exec deno run --cached-only --unstable-no-legacy-abort --v8-flags=--no-allocation-site-pretenuring,--max-semi-space-size=4 --no-prompt \
  --allow-net --allow-env --allow-read --allow-write --allow-sys \
  /opt/weir/main.ts "$@"
