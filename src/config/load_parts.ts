import { getHeapStatistics } from "node:v8";
import { type FlatDescriptor, flatDescriptors, RulesBuilder } from "../ratelimit/compile_rules.ts";
import { checkSources } from "../ratelimit/rule_check.ts";
import { problemsInOrder } from "../base/problem.ts";
import type { RulesLoad } from "./provider.ts";

/** A part of a load, small enough not to block the thread that receives it. */
export type LoadPart =
  | { readonly kind: "domain"; readonly domain: string }
  /** Rules of the last named domain. */
  | { readonly kind: "descriptors"; readonly descriptors: readonly FlatDescriptor[] }
  /** The load is complete. */
  | {
    readonly kind: "end";
    readonly hasRules: boolean;
    readonly rest: Omit<RulesLoad, "sources" | "rules">;
    /** Heap of the thread that read the files, in bytes. */
    readonly heapBytes: number;
    /** Whether that thread has a low priority now, for good. */
    readonly hasGivenWay: boolean;
  };

/** Compiling this many takes about a millisecond. */
const DESCRIPTORS_PER_PART = 250;

/** The load in parts, in the order that `LoadGatherer` expects; without rules when a problem is an error. */
export function* partsOfLoad(
  { sources, problems, ...rest }: RulesLoad,
  { mergeDomains, hasGivenWay }: { readonly mergeDomains: boolean; readonly hasGivenWay: boolean },
): Generator<LoadPart> {
  const all = problemsInOrder([...problems, ...checkSources(sources ?? [], mergeDomains)]);
  const isGood = sources !== undefined && rest.isUnchanged !== true &&
    all.every(({ severity }) => severity !== "error");
  for (const { domain, descriptors } of isGood ? sources : []) {
    yield { kind: "domain", domain };
    let part: FlatDescriptor[] = [];
    for (const descriptor of flatDescriptors(descriptors)) {
      if (part.push(descriptor) < DESCRIPTORS_PER_PART) continue;
      yield { kind: "descriptors", descriptors: part };
      part = [];
    }
    if (part.length > 0) yield { kind: "descriptors", descriptors: part };
  }
  const heapBytes = getHeapStatistics().total_heap_size;
  yield { kind: "end", hasRules: isGood, rest: { ...rest, problems: all }, heapBytes, hasGivenWay };
}

/** Assembles rules from the parts of loads. */
export class LoadGatherer {
  #builder = new RulesBuilder();

  /** Takes the next part; returns the load after its last one. */
  take(part: LoadPart): RulesLoad | undefined {
    switch (part.kind) {
      case "domain":
        this.#builder.domain(part.domain);
        return undefined;
      case "descriptors":
        for (const descriptor of part.descriptors) this.#builder.add(descriptor);
        return undefined;
      case "end": {
        const builder = this.#builder;
        this.#builder = new RulesBuilder();
        const load = { ...part.rest, sources: undefined };
        return part.hasRules ? { ...load, rules: builder.finish() } : load;
      }
    }
  }
}
