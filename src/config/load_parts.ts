import type { DescriptorSource, DomainSource } from "../ratelimit/rule_source.ts";
import type { RulesLoad } from "./provider.ts";

/** A piece of a load, small enough to hold nobody up who takes it over from another thread. */
export type LoadPart =
  /** A domain begins; its descriptors follow. */
  | { readonly kind: "domain"; readonly domain: Omit<DomainSource, "descriptors"> }
  | { readonly kind: "descriptors"; readonly descriptors: readonly DescriptorSource[] }
  /** The load is complete; `rest` is what is not in the parts before. */
  | { readonly kind: "end"; readonly hasSources: boolean; readonly rest: Omit<RulesLoad, "sources"> };

/** How many descriptors are in a part; those below them go with them. */
const DESCRIPTORS_PER_PART = 1_000;

/** The load in parts, in the order in which `LoadGatherer` takes them. */
export function* partsOfLoad({ sources, ...rest }: RulesLoad): Generator<LoadPart> {
  for (const { descriptors, ...domain } of sources ?? []) {
    yield { kind: "domain", domain };
    for (let start = 0; start < descriptors.length; start += DESCRIPTORS_PER_PART) {
      yield { kind: "descriptors", descriptors: descriptors.slice(start, start + DESCRIPTORS_PER_PART) };
    }
  }
  yield { kind: "end", hasSources: sources !== undefined, rest };
}

/** Puts loads together again. */
export class LoadGatherer {
  #sources: DomainSource[] = [];
  #descriptors: DescriptorSource[] = [];

  /** Takes the next part; answers the load when this was its last one. */
  take(part: LoadPart): RulesLoad | undefined {
    switch (part.kind) {
      case "domain":
        this.#descriptors = [];
        this.#sources.push({ ...part.domain, descriptors: this.#descriptors });
        return undefined;
      case "descriptors":
        this.#descriptors.push(...part.descriptors);
        return undefined;
      case "end": {
        const sources = this.#sources;
        this.#sources = [];
        return { ...part.rest, sources: part.hasSources ? sources : undefined };
      }
    }
  }
}
