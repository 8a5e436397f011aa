/**
 * Releases whose `node:http2` aborts the process when a peer that has made many calls sends GOAWAY. Only the gRPC engine
 * `grpc-js` uses it.
 */
const ABORTING = { from: "2.9.4", to: "2.9.8" } as const;

interface RuntimeUse {
  readonly GRPC_ENGINE: string;
  readonly ALLOW_UNSAFE_DENO: boolean;
}

/** A remark on the runtime; with `refuse`, the program must not start. */
interface RuntimeVerdict {
  readonly refuse: boolean;
  readonly text: string;
}

/** The verdict on a release of Deno for these settings; undefined for a good one. */
export function checkRuntime(version: string, use: RuntimeUse): RuntimeVerdict | undefined {
  if (use.GRPC_ENGINE !== "grpc-js" || compareVersions(version, ABORTING.from) < 0) return undefined;
  const releases = `Deno ${ABORTING.from} to ${ABORTING.to}`;
  if (compareVersions(version, ABORTING.to) > 0) {
    const text =
      `GRPC_ENGINE=grpc-js was not tested on Deno ${version}; with it, a gRPC peer can abort ${releases}`;
    return { refuse: false, text };
  }
  const reason =
    `with GRPC_ENGINE=grpc-js, a gRPC peer can abort Deno ${version} (${releases} have this fault)`;
  if (use.ALLOW_UNSAFE_DENO) {
    return { refuse: false, text: `Starting although ${reason}: ALLOW_UNSAFE_DENO is set` };
  }
  const cure = "use GRPC_ENGINE=native or another release, or set ALLOW_UNSAFE_DENO=true to start anyway";
  return { refuse: true, text: `Cannot start: ${reason}; ${cure}` };
}

/** Below 0, 0 or above 0, as the first version is older, the same or newer. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbersOf(version: string): number[] {
  return version.split(/[.+-]/).slice(0, 3).map(Number);
}
