import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
} from "yaml";
import { strictText } from "../base/bytes.ts";
import type { ErrorCode, YAMLParseError } from "yaml";
import { ProblemLog } from "./problem_log.ts";
import { buildTree, tooDeep } from "./tree.ts";
import type { YamlValue } from "./value.ts";

/** A YAML file: its tree and its problems. */
export interface YamlDocument {
  /** Undefined if the file is empty or invalid; only the latter is logged. */
  readonly root: YamlValue | undefined;
  readonly log: ProblemLog;
  /** The cost of reading: the number of tokens, some of them with a higher weight. */
  readonly parts: number;
}

/** Replacements for messages of the parser. */
const SYNTAX_TEXTS: Partial<Record<ErrorCode, string>> = {
  TAB_AS_INDENT: "a tab is used as indentation; use spaces",
  BAD_ALIAS: "an alias has no name; put a text that begins with * in quotes",
  RESOURCE_EXHAUSTION: tooDeep(),
};

/** The text of a file in UTF-8, or in UTF-16 with a byte order mark; undefined for any other. */
export function yamlText(bytes: Uint8Array<ArrayBuffer>): string | undefined {
  const mark = (bytes[0] ?? 0) << 8 | (bytes[1] ?? 0);
  const encoding = mark === 0xFFFE ? "utf-16le" : mark === 0xFEFF ? "utf-16be" : "utf-8";
  return strictText(bytes, encoding).text;
}

/** Options of `readYamlDocument`. */
export interface YamlDocumentOptions {
  /** Maximum cost; the length is no bound, because a list of empty lists needs several hundred times its size. */
  readonly maxParts?: number;
}

/** Reads one YAML document; positions begin with `name`. */
export function readYamlDocument(
  name: string,
  source: string,
  options: YamlDocumentOptions = {},
): YamlDocument {
  // The byte order mark is not a character of the first line, and a carriage return alone ends a line.
  const text = (source.startsWith("\uFEFF") ? source.slice(1) : source).replaceAll(/\r(?!\n)/g, "\n");
  const lines = new LineCounter();
  const log = new ProblemLog(name, lines);
  const { documents, parts } = readDocuments(text, lines, options.maxParts ?? Infinity);
  if (documents === undefined) {
    log.error(0, "", `the file has more than ${parts - 1} words, marks and line ends; make several of it`);
    return { root: undefined, log, parts };
  }
  const [first, ...others] = documents;
  if (first === undefined) return { root: undefined, log, parts };
  const second = others.find((document) => document.errors.length > 0 || !isEmpty(document.contents));
  if (second !== undefined) {
    log.error(second.range[0], "", "a second document begins here; put it into a separate file");
  }
  if (first.errors.length > 0) {
    logSyntaxErrors(first.errors, log);
    return { root: undefined, log, parts };
  }
  return { root: rootOf(first.contents, text, log), log, parts };
}

/** Parses the whole text like `parseAllDocuments`; stops above the maximum cost. */
function readDocuments(
  text: string,
  lines: LineCounter,
  maxParts: number,
): { documents: Document.Parsed[] | undefined; parts: number } {
  const composer = new Composer({
    lineCounter: lines,
    // Values stay texts: the field decides whether it is a number or a flag.
    schema: "failsafe",
    resolveKnownTags: false,
    // Duplicate keys are reported with both positions, by the tree.
    uniqueKeys: false,
    prettyErrors: false,
  });
  const parser = new Parser(lines.addNewLine);
  const documents: Document.Parsed[] = [];
  let parts = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    parts += costOf(lexeme);
    if (parts > maxParts) return { documents: undefined, parts: maxParts + 1 };
    for (const part of withoutOldEscapes(lexeme)) {
      for (const token of parser.next(part)) documents.push(...composer.next(token));
    }
  }
  for (const token of parser.end()) documents.push(...composer.next(token));
  documents.push(...composer.end());
  return { documents, parts };
}

/** Replaces the escape of an apostrophe, which only YAML 1.1 has; blanks keep the following positions. */
function withoutOldEscapes(lexeme: string): string[] {
  if (!lexeme.startsWith('"') || !lexeme.includes("\\'")) return [lexeme];
  const text = lexeme.replaceAll(/\\([^])/g, (escape, character: string) => character === "'" ? "'" : escape);
  return text.length === lexeme.length ? [lexeme] : [text, " ".repeat(lexeme.length - text.length)];
}

/** About 400 bytes of memory per unit, for any text. */
function costOf(lexeme: string): number {
  switch (lexeme[0]) {
    case "*":
      return 3;
    case "[":
    case "{":
    case "'":
    case '"':
      return 2;
    default:
      return lexeme === "---" ? 2 : 1;
  }
}

/** True for a document without content, such as the one after a last `---`. */
function isEmpty(contents: Node | null): boolean {
  if (isMap(contents) || isSeq(contents)) return contents.items.length === 0;
  return contents === null || (isScalar(contents) && /^(?:|~|null|Null|NULL)$/.test(contents.source ?? ""));
}

function rootOf(contents: Node | null, text: string, log: ProblemLog): YamlValue | undefined {
  if (contents === null) return undefined;
  // Most large files have no anchors.
  const anchors = text.includes("&") ? resolveAliases(contents) : new Map<Alias, Node>();
  return buildTree(contents, log, anchors);
}

/** One problem per line: later ones are usually consequences. */
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
    log.error(offset, "", SYNTAX_TEXTS[error.code] ?? `not valid YAML: ${error.message}${hintFor(error)}`);
  }
}

/** The usual cause of messages that do not name it. */
function hintFor({ message }: YAMLParseError): string {
  if (message.startsWith("Sequence item without -")) return "; check the indentation of this line";
  return message.startsWith("Nested mappings are not allowed")
    ? "; check the indentation of the next line"
    : "";
}

/** The target of every alias: the last value before it with its name. */
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
