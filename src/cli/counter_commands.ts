import type { JsonValue } from "../base/exact_json.ts";
import { parseDescriptorText } from "../ratelimit/request.ts";
import type { AdministrationCommand } from "./administration_verbs.ts";
import { bodyFlag, type CallFlags } from "./administration_flags.ts";
import { FlagError } from "./flags.ts";

const FLAGS = {
  domain: bodyFlag("domain", "NAME", "domain of the rules (required)", { isRequired: true }),
  descriptors: bodyFlag(
    "descriptors",
    "LIST",
    "one descriptor: key=value,key=value (required); a value with a comma requires the API",
    { repeated: true, isRequired: true, read: readEntries },
  ),
};
const PEEK_FLAGS: CallFlags = {
  domain: FLAGS.domain,
  descriptors: { ...FLAGS.descriptors, instead: "bucket" },
  bucket: bodyFlag(
    "bucket",
    "LIST",
    "one bucket of a quota, in place of --descriptors: key=value,key=value, in any order",
    { read: ([text = ""]) => readPairs(text) },
  ),
};

const COLUMNS = {
  descriptors: [
    ...["descriptor", "limited", "reason", "rule", "algorithm", "cacheKey", "limit", "unit", "windowSeconds"],
    ...["timezone", "burst", "used", "usedBefore", "remaining", "resetsAt"],
  ],
};

/** Commands that read and reset the counters of a request. */
export const COUNTER_COMMANDS: readonly AdministrationCommand[] = [
  counterCommand(
    "peek",
    "show the counters of a request, or the quota of a bucket, without counting hits",
    PEEK_FLAGS,
  ),
  counterCommand("reset", "delete the counters of a request in their current windows", FLAGS),
];

function counterCommand(action: string, doc: string, flags: CallFlags): AdministrationCommand {
  return {
    words: `counters ${action}`,
    args: [],
    doc,
    method: "POST",
    path: `/counters/${action}`,
    flags,
    shown: { as: "record", columns: COLUMNS },
  };
}

/** Descriptors as `weir client` takes them, in the format of `/json`. */
function readEntries(texts: readonly string[]): JsonValue {
  return texts.map((text) => ({ entries: readPairs(text) }));
}

function readPairs(text: string): JsonValue {
  const entries = parseDescriptorText(text);
  if (typeof entries === "string") throw new FlagError(entries);
  return entries.map(({ key, value }) => ({ key, value }));
}
