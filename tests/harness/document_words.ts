import { lineAt, type Page } from "./documents.ts";
import { PRIVATE_WORDS } from "./tidy_rules.ts";

/** More words that a reader of documents has to decode; code has some of them as names. */
const MORE_WORDS = new RegExp(
  [
    "stands?",
    "stood",
    "tells",
    "told",
    "says",
    "said",
    "that there (?:is|are)",
    "(?:a|the|every|no) good (?:rule|file|key|token|secret|signature|mapping|request|value)s?",
    "(?:key|token|secret|certificate)s? (?:is|are|was|were) made",
    "(?<=^|[.:] )What (?:is|are|was|were|cannot|could|does|has)(?! \\w+\\?)",
    "measured again",
    "tried (?:out|before)",
    "TO" + "DO",
  ].map((words) => /^\W/.test(words) ? words : `\\b${words}\\b`).join("|").replaceAll(" ", "[ \\n]+"),
  "gim",
);
const DATE = /\b20\d\d-\d\d-\d\d\b/g;
/** Pages that may have dates: releases, and measurements. */
const DATED = ["CHANGELOG.md", "docs/performance.md"];
const MAX_README_LINES = 250;

/** What in the prose of a page breaks the style, each as a line to print. */
export function wordProblems(page: Page): string[] {
  const dates = DATED.includes(page.path) ? [] : [DATE];
  const words = [PRIVATE_WORDS, MORE_WORDS, ...dates].flatMap((pattern) => [...page.prose.matchAll(pattern)]);
  const found = words.toSorted((a, b) => a.index - b.index)
    .map(({ 0: match, index }) =>
      `${page.path}:${lineAt(page.text, index)}: ${match.replaceAll(/\s+/g, " ")}`
    );
  return [...found, ...lengthProblems(page)];
}

function lengthProblems({ path, text }: Page): string[] {
  const lines = text.trimEnd().split("\n").length;
  return path === "README.md" && lines > MAX_README_LINES ? [`${path} has ${lines} lines`] : [];
}
