import { getHeapStatistics } from "node:v8";
import {
  type CompileOptions,
  type FlatDescriptor,
  flatDescriptors,
  RulesBuilder,
} from "../ratelimit/rules/compile_rules.ts";
import { checkSources, type SourceChecks } from "../ratelimit/rules/rule_check.ts";
import { placeOf, problemsInOrder } from "../base/problem.ts";
import type { DomainSource } from "../ratelimit/rule_source.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import type { RulesLoad, RuleTexts } from "./provider.ts";

/** A part of a load, small enough not to block the thread that receives it. */
export type LoadPart =
  | { readonly kind: "domain"; readonly domain: string; readonly file: string }
  /** Rules of the last named domain. */
  | { readonly kind: "descriptors"; readonly descriptors: readonly FlatDescriptor[] }
  /** The load is complete. */
  | {
    readonly kind: "end";
    readonly hasRules: boolean;
    readonly rest: Omit<RulesLoad, "sources" | "rules">;
    /** Heap of the thread that read the files, in bytes. */
    readonly heapBytes: number;
    /** True if that thread has a low priority now, for good. */
    readonly isLower: boolean;
  };

/** A part that has rules. */
type RulePart = Exclude<LoadPart, { readonly kind: "end" }>;

/** Compiling this many takes about a millisecond. */
const DESCRIPTORS_PER_PART = 250;

/** The load in parts, in the order that `LoadGatherer` expects; without rules when a problem is an error. */
export function* partsOfLoad(
  { sources, problems, ...rest }: RulesLoad,
  { isLower = false, ...options }: SourceChecks & CompileOptions & { readonly isLower?: boolean },
): Generator<LoadPart> {
  const all = problemsInOrder([...problems, ...checkSources(sources ?? [], options)]);
  const isGood = sources !== undefined && rest.isUnchanged !== true &&
    all.every(({ severity }) => severity !== "error");
  for (const { at, domain, descriptors } of isGood ? sources : []) {
    yield { kind: "domain", domain, file: placeOf(at).file };
    let part: FlatDescriptor[] = [];
    for (const descriptor of flatDescriptors(descriptors, options)) {
      if (part.push(descriptor) < DESCRIPTORS_PER_PART) continue;
      yield { kind: "descriptors", descriptors: part };
      part = [];
    }
    if (part.length > 0) yield { kind: "descriptors", descriptors: part };
  }
  const heapBytes = getHeapStatistics().total_heap_size;
  yield { kind: "end", hasRules: isGood, rest: { ...rest, problems: all }, heapBytes, isLower };
}

/** Assembles rules from the parts of loads. */
export class LoadGatherer {
  readonly #keepsTexts: boolean;
  #builder = new RulesBuilder();
  #texts: string[] = [];

  /** With `keepsTexts`, loads contain their rules for other threads. */
  constructor({ keepsTexts = false }: { readonly keepsTexts?: boolean } = {}) {
    this.#keepsTexts = keepsTexts;
  }

  /** Takes the next part; returns the load after its last one. */
  take(part: LoadPart): RulesLoad | undefined {
    if (part.kind !== "end") {
      if (this.#keepsTexts) this.#texts.push(JSON.stringify(part));
      return addTo(this.#builder, part);
    }
    const [builder, texts] = [this.#builder, this.#texts];
    this.#builder = new RulesBuilder();
    this.#texts = [];
    const load = { ...part.rest, sources: undefined };
    if (!part.hasRules) return load;
    return { ...load, rules: builder.finish(), ...(this.#keepsTexts ? { texts } : {}) };
  }
}

/** Valid sources as texts. */
export function ruleTexts(sources: readonly DomainSource[], options: CompileOptions = {}): RuleTexts {
  const load = { sources, problems: [], version: "" };
  const parts = [...partsOfLoad(load, options)];
  return parts.filter(({ kind }) => kind !== "end").map((part) => JSON.stringify(part));
}

/** Compiles rules from their texts. */
export class TextCompiler {
  #builder = new RulesBuilder();

  /** Takes the next text. */
  take(text: string): void {
    addTo(this.#builder, JSON.parse(text) as RulePart);
  }

  /** Returns the rules of all texts so far; the next text begins others. */
  finish(): Rules {
    const builder = this.#builder;
    this.#builder = new RulesBuilder();
    return builder.finish();
  }
}

function addTo(builder: RulesBuilder, part: RulePart): undefined {
  if (part.kind === "domain") builder.domain(part.domain, part.file);
  else for (const descriptor of part.descriptors) builder.add(descriptor);
}
