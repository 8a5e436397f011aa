import type { LineFormat } from "./flush_ports.ts";
import { type Mogrifier, mogrify, type StatTags } from "./mogrifier.ts";
import { statLines } from "./push_lines.ts";

/** Begins each tag that a statistic carries in its name: `.__key=value`. */
const TAG_MARK = ".__";
const BREAKS_NAME = /[:|\p{Cc}]/gu;
const BREAKS_KEY = /[:|,\p{Cc}]/gu;
const BREAKS_VALUE = /[|,\p{Cc}]/gu;

/** What tagged lines are made with. */
export interface TaggedLinesOptions {
  /** Tags of every line; where a statistic has one of the same key, its own counts. */
  readonly tags: StatTags;
  readonly mogrifiers: readonly Mogrifier[];
}

/** Lines `name:value|type|#key:value,key:value`. */
export function taggedLines({ tags, mogrifiers }: TaggedLinesOptions): LineFormat {
  return statLines((statName) => {
    const { name, tags: own } = separateTags(statName);
    const mogrified = mogrify(mogrifiers, name);
    const all = new Map([...tags, ...own, ...mogrified?.tags ?? []]);
    // A name that came out empty would be no name; the statistic keeps the one that it has.
    return { name: (mogrified?.name || name).replace(BREAKS_NAME, "_"), end: tagText(all) };
  });
}

function separateTags(statName: string): { name: string; tags: StatTags } {
  const [name = "", ...pairs] = statName.split(TAG_MARK);
  const tags = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at <= 0) return { name: statName, tags: new Map() };
    tags.set(pair.slice(0, at), pair.slice(at + 1));
  }
  return { name, tags };
}

function tagText(tags: StatTags): string {
  const texts = [...tags].filter(([, value]) => value !== "").map(([key, value]) => {
    return `${key.replace(BREAKS_KEY, "_")}:${value.replace(BREAKS_VALUE, "_")}`;
  });
  return texts.length === 0 ? "" : `|#${texts.join(",")}`;
}
