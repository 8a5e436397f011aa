import axe from "axe-core";
import type { OpenedPage } from "../../harness/page_browser.ts";

/** The findings of axe-core: the rule, the affected elements, and the remedy. */
const FINDINGS = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => [id, target.join(" "), failureSummary].join(": "))))`;

/** Runs axe-core over a page as it looks now. */
export async function axeFindings(opened: OpenedPage): Promise<unknown> {
  if (await opened.value("globalThis.axe === undefined")) await opened.value(`void ${axe.source}`);
  return await opened.value(FINDINGS);
}
