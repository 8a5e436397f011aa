/** Set by `deno task compile` in the copy that it compiles. */
const COMMIT: string = "";

/** The output of `weir version`. */
export function versionText(version: string): string {
  const commit = COMMIT === "" ? "" : `commit ${COMMIT}, `;
  return `weir ${version} (${commit}deno ${Deno.version.deno})`;
}
