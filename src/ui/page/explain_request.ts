import type { RuleStatistics } from "../snapshot.ts";
import { code, linkTo } from "./pieces.ts";
import type { PageParts } from "./view.ts";

type Path = Pick<RuleStatistics, "domain" | "entries">;

/** A link that opens Explain with the request of a key over its limit, or only its text if no known rule has such keys. */
export function keyLink(parts: PageParts, key: string): HTMLElement {
  for (const rule of parts.live().snapshot?.rules ?? []) {
    const values = valuesIn(key, rule);
    if (values !== undefined) return ruleLink(parts, key, rule, values);
  }
  return code(key);
}

/** A link that opens Explain with a request for a rule; without `values`, those that the rule leaves open are empty. */
export function ruleLink(
  parts: PageParts,
  text: string,
  { domain, entries }: Path,
  values: readonly string[] = entries.map(({ value }) => value),
): HTMLElement {
  const descriptors = entries.map(({ key }, index) => `${key}=${values[index] ?? ""}`).join(",");
  return linkTo(parts, text, "explain", "", { domain, descriptors });
}

/** The values of a key such as `shop_account_ann`; undefined if it cannot be a key of this rule. */
function valuesIn(key: string, { domain, entries }: Path): string[] | undefined {
  if (!key.startsWith(domain)) return undefined;
  let rest = key.slice(domain.length);
  const values: string[] = [];
  for (const [index, { key: name, value }] of entries.entries()) {
    const head = `_${name}_`;
    const next = entries[index + 1];
    if (!rest.startsWith(head)) return undefined;
    rest = rest.slice(head.length);
    const end = next === undefined ? rest.length : rest.indexOf(`_${next.key}_`);
    const found = rest.slice(0, Math.max(0, end));
    // A value with a star is a pattern.
    const isOpen = value === "" || value.includes("*");
    if (end === -1 || !isOpen && found !== value) return undefined;
    values.push(found);
    rest = rest.slice(end);
  }
  return rest === "" ? values : undefined;
}
