/**
 * A text that differs after a file was written to, replaced, or became readable or unreadable, from file system metadata
 * only. The runtime returns whole seconds of `ctime`, so a change that keeps size, time and permissions may be missed
 * within one: compare the content as well where that matters.
 */
export async function fileState(path: string): Promise<string> {
  try {
    const { size, mtime, ctime, ino, dev, isFile, mode } = await Deno.stat(path);
    return [size, mtime?.getTime(), ctime?.getTime(), ino, dev, isFile, mode].join(" ");
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}
