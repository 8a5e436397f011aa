/**
 * Exceptions by rule, folder and file: a reason for a permanent one, or the number of current findings, which may
 * only shrink.
 */
export type Exceptions = Readonly<Record<string, FolderExceptions>>;
type FolderExceptions = Readonly<Record<string, Readonly<Record<string, string | number>>>>;

/** The differences from the exceptions of one rule: findings without one, and exceptions that are too large. */
export function unexpected(findings: readonly string[], exceptions: FolderExceptions = {}): string[] {
  const byFile = Map.groupBy(findings, fileOf);
  const listed = new Map(
    Object.entries(exceptions).flatMap(([folder, files]) =>
      Object.entries(files).map(([file, limit]): [string, string | number] => [`${folder}/${file}`, limit])
    ),
  );
  return [...new Set([...byFile.keys(), ...listed.keys()])].flatMap((file) => {
    const [found, limit = 0] = [byFile.get(file) ?? [], listed.get(file)];
    if (typeof limit === "string" ? found.length > 0 && limit !== "" : found.length === limit) return [];
    if (typeof limit === "number" && found.length > limit) return found;
    return [`tests/harness/tidy_exceptions.json: ${file}: ${limit}, expected ${found.length}`];
  });
}

/** The same exceptions without those that are not needed. */
export function shrunk(exceptions: Exceptions, findings: ReadonlyMap<string, readonly string[]>): Exceptions {
  const entries = Object.entries(exceptions).map(([rule, folders]) => {
    const byFile = Map.groupBy(findings.get(rule) ?? [], fileOf);
    return [rule, shrunkFolders(folders, (file) => byFile.get(file)?.length ?? 0)] as const;
  });
  return Object.fromEntries(entries.filter(([, folders]) => Object.keys(folders).length > 0));
}

function shrunkFolders(folders: FolderExceptions, count: (file: string) => number): FolderExceptions {
  const entries = Object.entries(folders).map(([folder, files]) => {
    const needed = Object.entries(files).flatMap(([file, limit]) => {
      const found = count(`${folder}/${file}`);
      if (found === 0) return [];
      return [[file, typeof limit === "number" ? Math.min(limit, found) : limit] as const];
    });
    return [folder, Object.fromEntries(needed)] as const;
  });
  return Object.fromEntries(entries.filter(([, files]) => Object.keys(files).length > 0));
}

/** A finding begins with the path of its file. */
function fileOf(finding: string): string {
  const path = finding.split(/[: ]/, 1)[0] ?? "";
  return path.includes("/") ? path : `./${path}`;
}
