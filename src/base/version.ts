/** `deno task compile` puts the commit here in the copy that it compiles; sources that are run have none of their own. */
const COMMIT: string = "";

/** What `weir version` says: the version, the commit of a compiled program, and the Deno that runs it. */
export function versionText(version: string): string {
  const commit = COMMIT === "" ? "" : `commit ${COMMIT}, `;
  return `weir ${version} (${commit}deno ${Deno.version.deno})`;
}
