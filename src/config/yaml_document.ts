import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
} from "yaml";
import type { ErrorCode, YAMLParseError } from "yaml";
import { ProblemLog } from "./problem_log.ts";
import type { Steps } from "./steps.ts";
import { buildTree, tooDeep, type YamlValue } from "./yaml_tree.ts";

/** A file of YAML: its tree where it could be read, and the log for everything found in it. */
export interface YamlDocument {
  /** Absent when the file is empty or not YAML; the log then says so for the latter only. */
  readonly root: YamlValue | undefined;
  readonly log: ProblemLog;
}

/** Our words for what the parser says in others, or not clearly enough for the fix. */
const SYNTAX_TEXTS: Partial<Record<ErrorCode, string>> = {
  TAB_AS_INDENT: "a tab is used as indentation; use spaces",
  BAD_ALIAS: "an alias has no name; put a text that begins with * in quotes",
  RESOURCE_EXHAUSTION: tooDeep(),
};

/** How much is read at once: a few milliseconds' work. */
const TOKENS_PER_STEP = 5_000;
/** From this length on the other passes over a text are worth a pause, too. */
const LARGE_TEXT = 65_536;

/** Reads one document of YAML; `name` begins every position. Pauses are made in large files only. */
export function* yamlDocumentSteps(name: string, source: string): Steps<YamlDocument> {
  // The mark at the start is no character of the first line.
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source;
  const lines = new LineCounter();
  const log = new ProblemLog(name, lines);
  const [first, second] = yield* documentSteps(text, lines);
  if (first === undefined) return { root: undefined, log };
  if (second !== undefined) {
    log.error(second.range[0], "", "a second document begins here; put it into a file of its own");
  }
  if (first.errors.length > 0) {
    logSyntaxErrors(first.errors, log);
    return { root: undefined, log };
  }
  const root = rootOf(first.contents, text, log);
  if (text.length > LARGE_TEXT) yield;
  return { root, log };
}

/** What the parser's own function for a whole text does, in steps. */
function* documentSteps(text: string, lines: LineCounter): Steps<Document.Parsed[]> {
  const composer = new Composer({
    lineCounter: lines,
    // Types are ours to tell: values are taken as written, and only some fields are numbers or flags.
    schema: "failsafe",
    resolveKnownTags: false,
    // Keys given twice are reported with both places, and the same through merges.
    uniqueKeys: false,
    prettyErrors: false,
  });
  const parser = new Parser(lines.addNewLine);
  const documents: Document.Parsed[] = [];
  let tokens = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) documents.push(...composer.next(token));
    if (++tokens % TOKENS_PER_STEP === 0) yield;
  }
  for (const token of parser.end()) documents.push(...composer.next(token));
  documents.push(...composer.end());
  if (text.length > LARGE_TEXT) yield;
  return documents;
}

function rootOf(contents: Node | null, text: string, log: ProblemLog): YamlValue | undefined {
  if (contents === null) return undefined;
  // Without an anchor in the text there is nothing to find, and large files have none as a rule.
  const anchors = text.includes("&") ? resolveAliases(contents) : new Map<Alias, Node>();
  return buildTree(contents, log, anchors);
}

/** One problem a line: what follows on it is as a rule a consequence. */
function logSyntaxErrors(errors: readonly YAMLParseError[], log: ProblemLog): void {
  const exhausted = errors.filter((error) => error.code === "RESOURCE_EXHAUSTION").slice(0, 1);
  const seen = new Set<string>();
  const shown = exhausted.length > 0 ? exhausted : [...errors].sort((a, b) => a.pos[0] - b.pos[0]);
  for (const error of shown) {
    // A tab is reported from the line break before it.
    const offset = error.code === "TAB_AS_INDENT" ? error.pos[1] - 1 : error.pos[0];
    const line = log.at(offset).replace(/:[0-9]+$/, "");
    if (seen.has(line)) continue;
    seen.add(line);
    log.error(offset, "", SYNTAX_TEXTS[error.code] ?? `not valid YAML: ${error.message}`);
  }
}

/** What every alias stands for: the last value before it that carries its name. */
function resolveAliases(root: Node): Map<Alias, Node> {
  const named = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  const stack: unknown[] = [root];
  while (stack.length > 0) {
    const node = stack.pop();
    if (isPair(node)) {
      stack.push(node.value, node.key);
    } else if (isAlias(node)) {
      const target = named.get(node.source);
      if (target !== undefined) targets.set(node, target);
    } else if (isNode(node)) {
      if (node.anchor !== undefined) named.set(node.anchor, node);
      if (isMap(node) || isSeq(node)) { for (const item of node.items.toReversed()) stack.push(item); }
    }
  }
  return targets;
}
