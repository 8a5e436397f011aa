import { editDistance } from "../base/edit_distance.ts";
import type { ProblemLog } from "./problem_log.ts";
import { shown } from "./yaml_scalar.ts";
import type { YamlMapping } from "./yaml_tree.ts";

/** The mappings of a rule file. */
export type Level = "file" | "descriptor" | "rateLimit" | "replaces";

/** What each mapping is called and which keys do something in it. */
const LEVELS: Readonly<Record<Level, { readonly place: string; readonly keys: readonly string[] }>> = {
  file: { place: "at the top of the file", keys: ["domain", "descriptors"] },
  descriptor: {
    place: "in a descriptor",
    keys: [
      "key",
      "value",
      "rate_limit",
      "descriptors",
      "shadow_mode",
      "quota_mode",
      "detailed_metric",
      "value_to_metric",
      "share_threshold",
      "metadata",
    ],
  },
  rateLimit: {
    place: "in 'rate_limit'",
    keys: ["unit", "requests_per_unit", "unit_multiplier", "unlimited", "name", "replaces"],
  },
  replaces: { place: "in an item of 'replaces'", keys: ["name"] },
};

/** Reports keys that nobody knows, and keys that do nothing where they stand. */
export function checkKeys(log: ProblemLog, mapping: YamlMapping, path: string, level: Level): void {
  const known = LEVELS[level].keys;
  for (const [key, { offset }] of mapping.entries) {
    if (known.includes(key)) continue;
    const places = Object.values(LEVELS).filter(({ keys }) => keys.includes(key)).map(({ place }) => place);
    if (places.length > 0) {
      log.warning(offset, pathOf(path, key), `has no effect here; it belongs ${places.join(" or ")}`);
    } else {
      log.error(offset, path, `unknown key '${shown(key)}'; ${advice(key, known)}`);
    }
  }
}

/** The path of a field of the mapping at `path`. */
export function pathOf(path: string, key: string): string {
  return path === "" ? shown(key) : `${path}.${shown(key)}`;
}

function advice(key: string, known: readonly string[]): string {
  const nearest = nearestKey(key, known);
  return nearest === undefined ? `use one of ${known.join(", ")}` : `did you mean '${nearest}'?`;
}

/** The key that was most likely meant; absent when none is near. */
function nearestKey(key: string, known: readonly string[]): string | undefined {
  // A key of any length would cost its length for each candidate.
  const wanted = plain(key.slice(0, 60));
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const candidate = plain(name);
    const begins = wanted.length >= 3 && candidate.startsWith(wanted);
    const distance = begins ? 1 : editDistance(wanted, candidate);
    if (distance > Math.max(1, candidate.length / 3)) continue;
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  return best?.name;
}

/** Letter case and separators are the most frequent slips: they count for nothing. */
function plain(key: string): string {
  return key.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}
