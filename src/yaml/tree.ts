import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import type { ProblemLog } from "./problem_log.ts";
import { scalarType, shown } from "./scalar.ts";
import type { YamlEntry, YamlValue } from "./value.ts";

/** Maximum number of values from aliases in one file. */
const MAX_ALIASED_NODES = 100_000;
/** Maximum depth of lists and mappings. */
const MAX_DEPTH = 150;

const TAG = "tag:yaml.org,2002:";
const SCALAR_TAGS = new Set([`${TAG}str`, `${TAG}int`, `${TAG}float`, `${TAG}bool`, `${TAG}null`, "!"]);
const TEXT_TAGS = new Set([`${TAG}str`, "!"]);
const COLLECTION_TAGS = new Set([`${TAG}map`, `${TAG}seq`, "!"]);

/** Builds the tree with aliases and merge keys resolved. */
export function buildTree(root: Node, log: ProblemLog, anchors: ReadonlyMap<Alias, Node>): YamlValue {
  return new TreeBuilder(log, anchors).value(root, 0);
}

class TreeBuilder {
  readonly #log: ProblemLog;
  readonly #anchors: ReadonlyMap<Alias, Node>;
  /** The path of the current value; joined only for problems. */
  readonly #path: (string | number)[] = [];
  /** The collections around the current value: an alias to one of them is a cycle. */
  readonly #open = new Set<Node>();
  /** Offset of the outermost alias around the current value. */
  #use: number | undefined;
  #aliased = 0;

  constructor(log: ProblemLog, anchors: ReadonlyMap<Alias, Node>) {
    this.#log = log;
    this.#anchors = anchors;
  }

  /** Converts a node; `fallback` is its offset if it has none. */
  value(node: unknown, fallback: number): YamlValue {
    const offset = this.#use ?? startOf(node, fallback);
    if (isAlias(node)) return this.#alias(node, offset);
    if (this.#use !== undefined && !this.#afford(offset)) return { kind: "broken", offset };
    return this.#plain(node, offset);
  }

  #plain(node: unknown, offset: number): YamlValue {
    if (isScalar(node)) return this.#scalar(node, offset);
    if (isMap(node) || isSeq(node)) return this.#collection(node, offset);
    return { kind: "scalar", offset, text: "", quoted: false };
  }

  #afford(offset: number): boolean {
    this.#aliased++;
    if (this.#aliased === MAX_ALIASED_NODES + 1) {
      this.#error(offset, `aliases stand for more than ${MAX_ALIASED_NODES} values in this file; use fewer`);
    }
    return this.#aliased <= MAX_ALIASED_NODES;
  }

  #alias(alias: Alias, offset: number): YamlValue {
    const target = this.#anchors.get(alias);
    const name = shown(alias.source);
    if (target === undefined) {
      this.#error(
        offset,
        `unknown alias '*${name}'; write '&${name}' at an earlier value, or put a text that begins with * in quotes`,
      );
      return { kind: "broken", offset };
    }
    if (this.#open.has(target)) {
      this.#error(offset, `alias '*${name}' is inside its own value; use it outside of that value`);
      return { kind: "broken", offset };
    }
    const outer = this.#use;
    this.#use = offset;
    const value = this.value(target, offset);
    this.#use = outer;
    return value;
  }

  #scalar(node: Scalar, offset: number): YamlValue {
    const tag = node.tag;
    if (tag !== undefined && !SCALAR_TAGS.has(tag)) return this.#unknownTag(tag, offset);
    const text = node.source ?? "";
    if (node.type === Scalar.QUOTE_DOUBLE && !text.isWellFormed()) {
      this.#error(
        offset,
        "an escape such as \\ud83d is half of a character; write the character, or \\U0001f600",
      );
      return { kind: "broken", offset };
    }
    // A tag takes precedence over quotes.
    const quoted = tag === undefined ? node.type !== Scalar.PLAIN : TEXT_TAGS.has(tag);
    return { kind: "scalar", offset, text, quoted };
  }

  #unknownTag(tag: string, offset: number): YamlValue {
    this.#error(offset, `unknown tag '${shown(tag)}'; remove it`);
    return { kind: "broken", offset };
  }

  #collection(node: YAMLMap | YAMLSeq, offset: number): YamlValue {
    if (node.tag !== undefined && !COLLECTION_TAGS.has(node.tag)) return this.#unknownTag(node.tag, offset);
    if (this.#open.size >= MAX_DEPTH) {
      this.#error(offset, tooDeep());
      return { kind: "broken", offset };
    }
    this.#open.add(node);
    const value = isMap(node) ? this.#mapping(node, offset) : this.#list(node, offset);
    this.#open.delete(node);
    return value;
  }

  #list(node: YAMLSeq, offset: number): YamlValue {
    const items = node.items.map((item, index) => {
      this.#path.push(index);
      const value = this.value(item, offset);
      this.#path.pop();
      return value;
    });
    return { kind: "list", offset, items };
  }

  #mapping(node: YAMLMap, offset: number): YamlValue {
    const entries = new Map<string, YamlEntry>();
    let merge: { readonly offset: number; readonly node: unknown } | undefined;
    for (const pair of node.items) {
      const keyOffset = this.#use ?? startOf(pair.key, offset);
      const isMerge = isScalar(pair.key) && pair.key.type === Scalar.PLAIN && pair.key.source === "<<";
      const key = isMerge ? "<<" : this.#key(pair.key, keyOffset);
      if (key === undefined) continue;
      const first = isMerge ? merge : entries.get(key);
      if (first !== undefined) {
        this.#duplicate(key, keyOffset, first.offset);
      } else if (isMerge) {
        merge = { offset: keyOffset, node: pair.value };
      } else {
        this.#path.push(key);
        entries.set(key, { offset: keyOffset, value: this.value(pair.value, keyOffset) });
        this.#path.pop();
      }
    }
    if (merge !== undefined) this.#merge(entries, merge.node, merge.offset);
    return { kind: "mapping", offset, entries };
  }

  #key(node: unknown, offset: number): string | undefined {
    // Keys do not count as values of aliases.
    const key = isAlias(node) ? this.#alias(node, offset) : this.#plain(node, offset);
    if (key.kind === "broken") return undefined;
    const type = key.kind === "scalar" ? scalarType(key) : key.kind;
    if (key.kind === "scalar" && (type === "text" || type === "date")) return key.text;
    const text = key.kind === "scalar" ? shown(key.text === "" ? "nothing" : key.text) : `a ${key.kind}`;
    this.#error(offset, `key is not of type string: ${text}; write a name, or put it in quotes`);
    return undefined;
  }

  #duplicate(key: string, offset: number, first: number): void {
    const fix = key === "<<" ? "merge a list instead, as in '<<: [*a, *b]'" : "keep one of them";
    this.#path.push(key);
    this.#error(offset, `key '${shown(key)}' is given twice, first at ${this.#log.at(first)}; ${fix}`);
    this.#path.pop();
  }

  /** Adds the entries of a merge key; existing keys and earlier sources take precedence. */
  #merge(entries: Map<string, YamlEntry>, node: unknown, offset: number): void {
    this.#path.push("<<");
    const merged = this.value(node, offset);
    this.#path.pop();
    for (const source of merged.kind === "list" ? merged.items : [merged]) {
      if (source.kind === "broken") continue;
      if (source.kind !== "mapping") {
        this.#error(source.offset, "'<<' takes a mapping or a list of mappings, such as '<<: *name'");
        continue;
      }
      for (const [key, entry] of source.entries) {
        if (!entries.has(key)) entries.set(key, entry);
      }
    }
  }

  #error(offset: number, text: string): void {
    let path = "";
    for (const part of this.#path) {
      if (typeof part === "number") path += `[${part}]`;
      else path += path === "" ? shown(part) : `.${shown(part)}`;
    }
    this.#log.error(offset, path, text);
  }
}

/** The message for a file above the maximum depth. */
export function tooDeep(): string {
  return `lists and mappings are nested more than ${MAX_DEPTH} levels deep; use fewer levels`;
}

function startOf(node: unknown, fallback: number): number {
  const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
  return range?.[0] ?? fallback;
}
