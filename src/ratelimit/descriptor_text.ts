import type { Entry } from "./request.ts";

/**
 * A descriptor as people write it: comma-separated key=value pairs. Where it cannot be read the answer is a
 * text: what is wrong, and what would be right.
 */
export function parseDescriptorText(list: string): Entry[] | string {
  const entries: Entry[] = [];
  for (const pair of list.split(",")) {
    const [key = "", value, ...more] = pair.split("=");
    if (value === undefined || more.length > 0) {
      const fault = value === undefined ? "has no equals sign" : "has more than one equals sign";
      return `"${pair}" ${fault}, key=value would be right`;
    }
    entries.push({ key, value });
  }
  return entries;
}
