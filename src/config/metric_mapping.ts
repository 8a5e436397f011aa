import { type Problem, problemText } from "../base/problem.ts";
import { FieldReader, pathOf, unknownKeyText } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { fileErrorText } from "./rule_file_reader.ts";
import { readYamlDocument, yamlText } from "../yaml/document.ts";
import { described, flagOf, isNull, numberOf, shown } from "../yaml/scalar.ts";
import { groupsIn } from "../base/pattern.ts";
import { parseDuration } from "../base/duration.ts";
import { type PatternGroups, readMappingPattern } from "./mapping_pattern.ts";
import type { YamlMapping, YamlValue } from "../yaml/value.ts";

/** Maps names of statistics to a metric. */
interface MetricMapping {
  /** Matches names; without `^` and `$` anywhere in them. */
  readonly pattern: RegExp;
  /** The only kind of statistics that it applies to; any when absent. */
  readonly kind: "counter" | "gauge" | "histogram" | undefined;
  /** True if matching statistics are hidden. */
  readonly drop: boolean;
  /** May contain `$1` or `$name` for the groups of the pattern, like the label values. */
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
interface MetricMappingFile {
  readonly mappings: readonly MetricMapping[];
  readonly problems: readonly Problem[];
}

/** A larger mapping file is a mistake. */
const MAX_BYTES = 1_048_576;
const KINDS = { counter: "counter", gauge: "gauge", observer: "histogram", timer: "histogram" } as const;
const FILE_KEYS = ["defaults", "mappings"];
/** Keys of the format that have no effect, with the reason. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  ttl: "statistics do not expire",
  honor_labels: "statistics have no labels before the mapping",
  glob_disable_ordering: "the first glob that matches applies",
  summary_options: "durations are histograms",
  quantiles: "durations are histograms",
  native_histogram_bucket_factor: "histograms have fixed bounds",
  native_histogram_max_buckets: "histograms have fixed bounds",
};
const DEFAULT_KEYS = ["match_type", "observer_type", "timer_type", "buckets", "histogram_options"];
const MAPPING_KEYS = [
  ...["match", "match_type", "match_metric_type", "name", "labels", "help", "action", "scale"],
  ...["observer_type", "timer_type", "buckets", "histogram_options"],
];
const METRIC_NAME = /^(?![0-9])(?:[a-zA-Z0-9_]|\$\{\w+\}|\$<\w+>|\$\w+)+$/;
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Reads the mapping file at the path, which may have warnings; throws an error with one line per problem. */
export async function loadMetricMapping(
  path: string,
  options: MetricMappingOptions,
): Promise<MetricMappingFile> {
  const text = await textOf(path);
  const file = readMetricMapping(path, text, options);
  const isInvalid = file.problems.some(({ severity }) => severity === "error");
  if (isInvalid) throw new Error(file.problems.map(problemText).join("\n"));
  return file;
}

async function textOf(path: string): Promise<string> {
  try {
    const { size, isFile } = await Deno.stat(path);
    if (!isFile) throw new Error("it is not a file");
    if (size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    const text = yamlText(await Deno.readFile(path));
    if (text === undefined) throw new Error("it is not UTF-8");
    return text;
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
    log.warning(0, "", "there are no mappings; begin with 'mappings:' and a list below it");
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
  const fields = fieldsOf(log, root, "", FILE_KEYS);
  const defaults = readDefaults(fields);
  const read: Read[] = [];
  for (const [index, item] of fields.list("mappings")?.items.entries() ?? []) {
    const path = `mappings[${index}]`;
    if (item.kind === "mapping") {
      read.push(...readMapping(fieldsOf(log, item, path, MAPPING_KEYS), defaults, boundsSeconds));
    } else if (item.kind !== "broken") {
      log.error(item.offset, path, `expected a mapping with match and name, got ${described(item)}`);
    }
  }
  return read;
}

function readDefaults(file: FieldReader): Defaults {
  const given = file.mapping("defaults");
  if (given === undefined) return { matchType: "glob", bounds: undefined };
  const fields = fieldsOf(file.log, given, "defaults", DEFAULT_KEYS);
  const matchType = matchTypeOf(fields) ?? "glob";
  checkObserver(fields);
  return { matchType, bounds: boundsField(fields) };
}

/** An empty word is the default. */
function matchTypeOf(fields: FieldReader): "glob" | "regex" | undefined {
  return fields.choice("match_type", ["glob", "regex", ""]) || undefined;
}

function checkObserver(fields: FieldReader): void {
  for (const key of ["observer_type", "timer_type"]) {
    const type = fields.choice(key, ["histogram", "summary", ""]);
    if (type === "summary") fields.warning(key, "durations are histograms, as with 'histogram'");
  }
}

/** The bounds, from either of the two places that the format allows. */
function boundsField(fields: FieldReader): YamlValue | undefined {
  const options = fields.mapping("histogram_options");
  if (options === undefined) return fields.list("buckets");
  const path = fields.pathOf("histogram_options");
  return fieldsOf(fields.log, options, path, ["buckets"]).list("buckets") ?? fields.list("buckets");
}

function readMapping(fields: FieldReader, defaults: Defaults, boundsSeconds: readonly number[]): Read[] {
  const matchType = matchTypeOf(fields) ?? defaults.matchType;
  const drop = fields.choice("action", ["map", "drop", ""]) === "drop";
  const kind = fields.choice("match_metric_type", ["counter", "gauge", "observer", "timer", ""]) || undefined;
  checkObserver(fields);
  const scale = readScale(fields);
  const own = boundsField(fields);
  const isTime = kind !== "counter" && kind !== "gauge";
  const possible = boundsSeconds.map((bound) => Number((bound * scale).toPrecision(12)));
  const bounds = readBounds(fields, own ?? (isTime ? defaults.bounds : undefined), possible);
  const pattern = readMappingPattern(fields, matchType);
  const name = fields.anyText("name") ?? "";
  if (pattern === undefined) return [];
  if (!drop && !fields.failed("name")) checkName(fields, name, pattern.groups);
  const labels = readLabels(fields, pattern.groups);
  const help = fields.anyText("help");
  const known = kind === undefined ? undefined : KINDS[kind];
  return [{
    isGlob: matchType === "glob",
    mapping: { pattern: pattern.pattern, kind: known, drop, name, labels, help, scale, bounds },
  }];
}

function readScale(fields: FieldReader): number {
  const value = fields.source.entries.get("scale")?.value;
  if (value === undefined || value.kind === "broken" || (value.kind === "scalar" && isNull(value))) return 1;
  const scale = value.kind === "scalar" && !value.quoted && value.text !== "" ? numberOf(value) : undefined;
  if (scale !== undefined && scale > 0) return scale;
  fields.error("scale", `expected a number above 0, got ${described(value)}`);
  return 1;
}

function readBounds(
  { log, path }: FieldReader,
  value: YamlValue | undefined,
  possible: readonly number[],
): number[] | undefined {
  if (value?.kind !== "list" || value.items.length === 0) return undefined;
  const bounds: number[] = [];
  for (const item of value.items) {
    if (item.kind === "broken") continue;
    const bound = item.kind === "scalar" && !item.quoted ? numberOf(item) : undefined;
    const got = `${possible.join(", ")}, got ${described(item)}`;
    if (bound === undefined) log.error(item.offset, pathOf(path, "buckets"), `expected some of ${got}`);
    else if (possible.includes(bound)) bounds.push(bound);
    else log.warning(item.offset, pathOf(path, "buckets"), `is left out: the fixed bounds are ${got}`);
  }
  return bounds.length === 0 ? undefined : bounds;
}

function checkName(fields: FieldReader, name: string, groups: PatternGroups): void {
  if (name === "") {
    fields.error("name", "expected the name of the metric, or 'action: drop'; got nothing");
  } else if (!METRIC_NAME.test(name)) {
    fields.error("name", `expected letters, digits, _ and groups such as $1, got '${shown(name)}'`);
  }
  checkGroups(fields, "name", groups);
}

function readLabels(mapping: FieldReader, groups: PatternGroups): Record<string, string> {
  const labels: Record<string, string> = {};
  const given = mapping.mapping("labels");
  if (given === undefined) return labels;
  const fields = new FieldReader(mapping.log, given, mapping.pathOf("labels"));
  for (const [label, { offset }] of given.entries) {
    if (!LABEL_NAME.test(label) || label === "le") {
      const text = `expected a label of letters, digits and _, but not le; got '${shown(label)}'`;
      fields.log.error(offset, fields.path, text);
      continue;
    }
    labels[label] = fields.anyText(label) ?? "";
    checkGroups(fields, label, groups);
  }
  return labels;
}

function checkGroups(fields: FieldReader, key: string, { count, names }: PatternGroups): void {
  const numbers = count === 0 ? "no group, because match has none" : `a group from 1 to ${count}`;
  const expected = [numbers, ...names].join(", ");
  for (const { written, group } of groupsIn(fields.anyText(key) ?? "")) {
    if (names.includes(group) || (/^[0-9]+$/.test(group) && Number(group) <= count)) continue;
    fields.error(key, `expected ${expected}; got '${shown(written)}'`);
  }
}

/** The fields of a mapping; an unknown key is ignored by other readers of the format, too. */
function fieldsOf(
  log: ProblemLog,
  mapping: YamlMapping,
  path: string,
  known: readonly string[],
): FieldReader {
  for (const [key, { offset, value }] of mapping.entries) {
    if (known.includes(key)) continue;
    const reason = Object.hasOwn(WITHOUT_EFFECT, key) ? WITHOUT_EFFECT[key] : undefined;
    if (reason === undefined) log.warning(offset, path, unknownKeyText(key, known));
    else if (!isDefault(value)) log.warning(offset, path, `'${key}' has no effect: ${reason}`);
  }
  return new FieldReader(log, mapping, path);
}

/** True if the value is the one without the key. */
function isDefault(value: YamlValue): boolean {
  if (value.kind === "mapping") return [...value.entries.values()].every((entry) => isDefault(entry.value));
  if (value.kind !== "scalar") return value.kind === "list" && value.items.length === 0;
  return isNull(value) || flagOf(value) === false || (parseDuration(value.text) ?? numberOf(value)) === 0;
}
