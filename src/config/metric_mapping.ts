import { type Problem, problemText } from "../base/problem.ts";
import { FieldReader, pathOf } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { fileErrorText } from "./rule_file_reader.ts";
import { unknownKeyText } from "./rule_fields.ts";
import { readYamlDocument } from "../yaml/document.ts";
import { described, isNull, numberOf, shown } from "../yaml/scalar.ts";
import type { YamlMapping, YamlValue } from "../yaml/value.ts";
import { errorText } from "../base/error_text.ts";

/** Maps names of statistics to a metric. */
export interface MetricMapping {
  /** Matches names; without `^` and `$` anywhere in them. */
  readonly pattern: RegExp;
  /** The only kind of statistics that it applies to; any when absent. */
  readonly kind: "counter" | "gauge" | "histogram" | undefined;
  /** Whether matching statistics are hidden. */
  readonly drop: boolean;
  /** May contain `$1` or `${1}` for the groups of the pattern, like the label values. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly help: string | undefined;
  /** Factor of values; durations are in seconds before. */
  readonly scale: number;
  /** Histogram bounds; all of them when absent. */
  readonly bounds: readonly number[] | undefined;
}

interface MetricMappingOptions {
  /** The available bounds of durations, in seconds. */
  readonly boundsSeconds: readonly number[];
}

/** The mappings of a file, in the order in which they are tried, and its problems. */
export interface MetricMappingFile {
  readonly mappings: readonly MetricMapping[];
  readonly problems: readonly Problem[];
}

/** A larger mapping file is a mistake. */
const MAX_BYTES = 1_048_576;
const KINDS = { counter: "counter", gauge: "gauge", observer: "histogram", timer: "histogram" } as const;
const FILE_KEYS = ["defaults", "mappings"];
const DEFAULT_KEYS = ["match_type", "observer_type", "timer_type", "buckets", "histogram_options"];
const MAPPING_KEYS = [
  ...["match", "match_type", "match_metric_type", "name", "labels", "help", "action", "scale"],
  ...["observer_type", "timer_type", "buckets", "histogram_options"],
];
/** Keys of the format that Weir does not support. */
const UNSUPPORTED = ["ttl", "quantiles", "summary_options", "honor_labels", "glob_disable_ordering"];
const METRIC_NAME = /^[a-zA-Z_](?:[a-zA-Z0-9_]|\$\{\d+\}|\$\d+)*$/;
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Reads the mapping file at the path; throws an error with one line per problem. */
export async function loadMetricMapping(
  path: string,
  options: MetricMappingOptions,
): Promise<readonly MetricMapping[]> {
  const text = await textOf(path);
  const { mappings, problems } = readMetricMapping(path, text, options);
  if (problems.length > 0) throw new Error(problems.map(problemText).join("\n"));
  return mappings;
}

async function textOf(path: string): Promise<string> {
  try {
    const { size, isFile } = await Deno.stat(path);
    if (!isFile) throw new Error("it is not a file");
    if (size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    return await Deno.readTextFile(path);
  } catch (cause) {
    throw new Error(`Cannot read PULL_METRICS_MAPPER_YAML "${path}": ${fileErrorText(cause)}`, { cause });
  }
}

/** Reads the text of a mapping file; `name` begins every position. */
export function readMetricMapping(
  name: string,
  text: string,
  options: MetricMappingOptions,
): MetricMappingFile {
  const { root, log } = readYamlDocument(name, text);
  const mappings = root === undefined || (root.kind === "scalar" && isNull(root))
    ? []
    : readRoot(root, log, options);
  const isSilent = log.problems().length === 0;
  if (isSilent && mappings.length === 0) {
    log.error(0, "", "there are no mappings; begin with 'mappings:' and a list below it");
  }
  // Glob patterns are tried before regular expressions, whatever their order in the file.
  const globs = mappings.filter(({ isGlob }) => isGlob);
  const rest = mappings.filter(({ isGlob }) => !isGlob);
  return { mappings: [...globs, ...rest].map(({ mapping }) => mapping), problems: log.problems() };
}

interface Read {
  readonly isGlob: boolean;
  readonly mapping: MetricMapping;
}

interface Place {
  readonly log: ProblemLog;
  readonly path: string;
  readonly boundsSeconds: readonly number[];
  readonly defaults: Defaults;
}

interface Defaults {
  readonly matchType: "glob" | "regex";
  readonly bounds: YamlValue | undefined;
}

function readRoot(root: YamlValue, log: ProblemLog, { boundsSeconds }: MetricMappingOptions): Read[] {
  if (root.kind === "broken") return [];
  if (root.kind !== "mapping") {
    log.error(root.offset, "", `expected a mapping with a list 'mappings', got ${described(root)}`);
    return [];
  }
  checkKnown(log, root, "", FILE_KEYS);
  const fields = new FieldReader(log, root, "");
  const given = fields.mapping("defaults");
  const defaults: Defaults = given === undefined
    ? { matchType: "glob", bounds: undefined }
    : readDefaults(given, log);
  const read: Read[] = [];
  for (const [index, item] of fields.list("mappings")?.items.entries() ?? []) {
    const path = `mappings[${index}]`;
    if (item.kind === "mapping") read.push(...readMapping(item, { log, path, boundsSeconds, defaults }));
    else if (item.kind !== "broken") {
      log.error(item.offset, path, `expected a mapping with match and name, got ${described(item)}`);
    }
  }
  return read;
}

function readDefaults(mapping: YamlMapping, log: ProblemLog): Defaults {
  checkKnown(log, mapping, "defaults", DEFAULT_KEYS);
  const fields = new FieldReader(log, mapping, "defaults");
  const matchType = fields.choice("match_type", ["glob", "regex"]) ?? "glob";
  checkObserver(fields);
  return { matchType, bounds: boundsField(fields, { log, path: "defaults" }) };
}

/** Durations are always histograms. */
function checkObserver(fields: FieldReader): void {
  for (const key of ["observer_type", "timer_type"]) fields.choice(key, ["histogram"]);
}

/** The bounds, from either of the two places that the format allows. */
function boundsField(
  fields: FieldReader,
  { log, path }: { readonly log: ProblemLog; readonly path: string },
): YamlValue | undefined {
  const options = fields.mapping("histogram_options");
  if (options === undefined) return fields.list("buckets");
  const optionsPath = pathOf(path, "histogram_options");
  checkKnown(log, options, optionsPath, ["buckets"]);
  return new FieldReader(log, options, optionsPath).list("buckets") ?? fields.list("buckets");
}

function readMapping(mapping: YamlMapping, place: Place): Read[] {
  const { log, path, defaults } = place;
  checkKnown(log, mapping, path, MAPPING_KEYS);
  const fields = new FieldReader(log, mapping, path);
  const matchType = fields.choice("match_type", ["glob", "regex"]) ?? defaults.matchType;
  const drop = fields.choice("action", ["map", "drop"]) === "drop";
  const kind = fields.choice("match_metric_type", ["counter", "gauge", "observer", "timer"]);
  checkObserver(fields);
  const scale = readScale(fields, mapping, place);
  const own = boundsField(fields, place);
  const isTime = kind !== "counter" && kind !== "gauge";
  const bounds = readBounds(own ?? (isTime ? defaults.bounds : undefined), scale, place);
  const match = fields.anyText("match") ?? "";
  const matchAt = { offset: fields.offset("match"), path: pathOf(path, "match") };
  const pattern = fields.failed("match")
    ? undefined
    : readMappingPattern(log, match, { matchType, ...matchAt });
  const name = fields.anyText("name") ?? "";
  if (pattern === undefined) return [];
  const { groups } = pattern;
  if (!drop && !fields.failed("name")) {
    checkName(name, { ...place, offset: fields.offset("name"), path: pathOf(path, "name"), groups });
  }
  const labels = readLabels(fields.mapping("labels"), { ...place, path: pathOf(path, "labels"), groups });
  const help = fields.text("help");
  const known = kind === undefined ? undefined : KINDS[kind];
  return [{
    isGlob: matchType === "glob",
    mapping: { pattern: pattern.pattern, kind: known, drop, name, labels, help, scale, bounds },
  }];
}

function readScale(fields: FieldReader, mapping: YamlMapping, { log, path }: Place): number {
  const value = mapping.entries.get("scale")?.value;
  if (value === undefined || value.kind === "broken" || (value.kind === "scalar" && isNull(value))) return 1;
  const scale = value.kind === "scalar" && !value.quoted && value.text !== "" ? numberOf(value) : undefined;
  if (scale !== undefined && scale > 0) return scale;
  const text = `expected a number above 0, got ${described(value)}`;
  log.error(fields.offset("scale"), pathOf(path, "scale"), text);
  return 1;
}

function readBounds(value: YamlValue | undefined, scale: number, place: Place): number[] | undefined {
  if (value?.kind !== "list") return undefined;
  const { log, path, boundsSeconds } = place;
  const possible = boundsSeconds.map((bound) => Number((bound * scale).toPrecision(12)));
  const bounds: number[] = [];
  for (const item of value.items) {
    if (item.kind === "broken") continue;
    const bound = item.kind === "scalar" && !item.quoted ? numberOf(item) : undefined;
    if (bound !== undefined && possible.includes(bound)) bounds.push(bound);
    else {
      const text = `expected some of ${possible.join(", ")}, got ${described(item)}`;
      log.error(item.offset, pathOf(path, "buckets"), text);
    }
  }
  return bounds;
}

interface TemplatePlace extends Place {
  /** Number of groups in the pattern. */
  readonly groups: number;
}

function checkName(name: string, place: TemplatePlace & { readonly offset: number }): void {
  const { log, offset, path } = place;
  if (name === "") {
    log.error(offset, path, "expected the name of the metric, or 'action: drop'; got nothing");
  } else if (!METRIC_NAME.test(name)) {
    log.error(offset, path, `expected letters, digits, _ and groups such as $1, got '${shown(name)}'`);
  }
  checkGroups(name, place);
}

function readLabels(mapping: YamlMapping | undefined, place: TemplatePlace): Record<string, string> {
  const { log, path } = place;
  const labels: Record<string, string> = {};
  if (mapping === undefined) return labels;
  const fields = new FieldReader(log, mapping, path);
  for (const [label, { offset }] of mapping.entries) {
    if (!LABEL_NAME.test(label) || label === "le") {
      log.error(offset, path, `expected a label of letters, digits and _, but not le; got '${shown(label)}'`);
      continue;
    }
    const value = fields.anyText(label) ?? "";
    checkGroups(value, { ...place, offset: fields.offset(label), path: pathOf(path, label) });
    labels[label] = value;
  }
  return labels;
}

function checkGroups(text: string, place: TemplatePlace & { readonly offset: number }): void {
  const { log, offset, path, groups } = place;
  for (const [reference, braced, bare] of text.matchAll(/\$(?:\{([^}]*)\}|(\w+))/g)) {
    const number = braced ?? /^\d+/.exec(bare ?? "")?.[0] ?? "";
    if (/^\d+$/.test(number) && Number(number) <= groups) continue;
    const expected = groups === 0 ? "no group, because match has none" : `a group from 1 to ${groups}`;
    log.error(offset, path, `expected ${expected}; got '${shown(reference)}'`);
  }
}

function checkKnown(log: ProblemLog, mapping: YamlMapping, path: string, known: readonly string[]): void {
  for (const [key, { offset }] of mapping.entries) {
    if (known.includes(key)) continue;
    if (UNSUPPORTED.includes(key)) {
      log.error(offset, path, `'${key}' is not supported; remove it`);
    } else log.error(offset, path, unknownKeyText(key, known));
  }
}

interface PatternPlace {
  readonly matchType: "glob" | "regex";
  readonly offset: number;
  readonly path: string;
}

interface MappingPattern {
  readonly pattern: RegExp;
  readonly groups: number;
}

/** Reads a pattern, a glob (`*` is one part between dots) or a regular expression; an invalid one is reported. */
function readMappingPattern(
  log: ProblemLog,
  match: string,
  { matchType, offset, path }: PatternPlace,
): MappingPattern | undefined {
  if (match === "") {
    log.error(offset, path, "expected a name such as 'ratelimit.service.*', got nothing");
    return undefined;
  }
  if (matchType === "regex") return readRegex(log, match, { offset, path });
  const parts = match.split(".");
  const bad = parts.find((part) => part === "" || (part.includes("*") && part !== "*"));
  if (bad !== undefined) {
    const text = bad === ""
      ? "expected a part between two dots, got nothing"
      : `expected '*' alone between dots, got '${shown(bad)}'`;
    log.error(offset, path, `${text}; correct it, or use 'match_type: regex'`);
    return undefined;
  }
  const source = parts.map((part) => part === "*" ? "([^.]*)" : RegExp.escape(part)).join("\\.");
  return { pattern: new RegExp(`^${source}$`), groups: parts.filter((part) => part === "*").length };
}

function readRegex(
  log: ProblemLog,
  match: string,
  { offset, path }: { readonly offset: number; readonly path: string },
): MappingPattern | undefined {
  try {
    // Go's syntax of named groups.
    const source = match.replaceAll("(?P<", "(?<");
    const pattern = new RegExp(source);
    // An empty match has one entry per group.
    return { pattern, groups: (new RegExp(`${source}|`).exec("")?.length ?? 1) - 1 };
  } catch (error) {
    const state = errorText(error);
    log.error(offset, path, `expected a regular expression, got '${shown(match)}': ${state}`);
    return undefined;
  }
}
