/** The tested release of Deno. */
const TRIED = "2.9.3";
/** Releases that end the whole process when a gRPC peer closes its session. */
const UNSAFE = { from: "2.9.4", to: "2.9.8" } as const;

/** A remark on the runtime; with `refuse`, the program must not start. */
export interface RuntimeVerdict {
  readonly refuse: boolean;
  readonly text: string;
}

/** The verdict on a release of Deno; undefined for a good one. */
export function checkRuntime(version: string, allowUnsafe: boolean): RuntimeVerdict | undefined {
  if (compareVersions(version, UNSAFE.from) >= 0 && compareVersions(version, UNSAFE.to) <= 0) {
    const reason =
      `Deno ${version} aborts the process when a gRPC peer closes its session (Deno ${UNSAFE.from} to ` +
      `${UNSAFE.to} do)`;
    if (allowUnsafe) return { refuse: false, text: `${reason}; going on, because ALLOW_UNSAFE_DENO is set` };
    const cure = `run it with Deno ${TRIED}, or set ALLOW_UNSAFE_DENO=true to start all the same`;
    return { refuse: true, text: `Cannot start: ${reason}; ${cure}` };
  }
  if (compareVersions(version, TRIED) <= 0) return undefined;
  return { refuse: false, text: `Deno ${version} was not tried with this program; Deno ${TRIED} was` };
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
