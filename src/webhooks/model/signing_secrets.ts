import type { Endpoint, EndpointSecret } from "./records.ts";

/**
 * The secrets that sign at a time. The first is the latest of those that are active, the oldest where none is yet; one
 * that was staged before another that is active already has been overtaken, and does not come back when its own time
 * comes. With an overlap, the next one and the previous one follow as long as the switch is no further away.
 */
export function signingSecrets(
  { secrets, rotationOverlapMs }: Pick<Endpoint, "secrets" | "rotationOverlapMs">,
  now: number,
): readonly EndpointSecret[] {
  const signing = secrets.find(({ activeAt }) => activeAt <= now) ?? secrets.at(-1);
  if (signing === undefined) return [];
  if (rotationOverlapMs === undefined) return [signing];
  const index = secrets.indexOf(signing);
  // Of those that become active at the same time, the newest will sign.
  const [next] = secrets.slice(0, index).toSorted((a, b) => a.activeAt - b.activeAt);
  const previous = secrets.slice(index + 1).find(({ activeAt }) => activeAt <= signing.activeAt);
  return [
    signing,
    ...next !== undefined && now >= next.activeAt - rotationOverlapMs ? [next] : [],
    ...previous !== undefined && now < signing.activeAt + rotationOverlapMs ? [previous] : [],
  ];
}
