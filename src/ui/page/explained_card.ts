import { type Child, element } from "./element.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf, textsOf } from "./fields.ts";
import { badge, code, facts, moment, note, type Tone } from "./pieces.ts";
import { shareBar } from "./rate_chart.ts";
import { countText } from "./text.ts";

const OUTCOMES: Readonly<Record<string, Tone>> = { limited: "good", unlimited: "quiet", replaced: "warn" };

/** The result for one descriptor: the limit, its counter and the path through the levels of the rules. */
export function explainedCard(descriptor: Fields): HTMLElement {
  const outcome = textOf(descriptor, "outcome");
  const title = recordsOf(descriptor, "entries").map(entryText).join(", ");
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, code(title), " ", badge(outcome === "none" ? "no limit" : outcome, OUTCOMES[outcome])),
    element("p", {}, textOf(descriptor, "why")),
    facts(factsOf(descriptor)),
    element("ol", { class: "walk" }, ...recordsOf(descriptor, "levels").map(level)),
  );
}

function factsOf(descriptor: Fields): (readonly [string, Child | readonly Child[]])[] {
  const limit = fieldsOf(descriptor["limit"]);
  const most = numberOf(limit, "requestsPerUnit");
  const used = numberOf(descriptor, "used");
  const rows: (readonly [string, Child | readonly Child[]])[] = [];
  if (textOf(limit, "rule") !== "") rows.push(["Rule", code(textOf(limit, "rule"))]);
  if (most !== undefined && !flagOf(limit, "unlimited")) {
    const seconds = numberOf(limit, "windowSeconds") ?? 0;
    const modes = ["shadowMode", "quotaMode"].filter((name) => flagOf(limit, name)).map((name) =>
      badge(name === "shadowMode" ? "shadow" : "quota", "warn")
    );
    rows.push(["Limit", [
      `${countText(most)} per ${textOf(limit, "unit").toLowerCase()} `,
      note(`${seconds} s `),
      ...modes,
    ]]);
  }
  if (most !== undefined && used !== undefined) {
    const left = numberOf(descriptor, "remaining") ?? 0;
    const text = `${countText(used)} used, ${countText(left)} left `;
    rows.push(["Counter", [text, shareBar(most === 0 ? 1 : used / most)]]);
  }
  if (textOf(descriptor, "cacheKey") !== "") rows.push(["Cache key", code(textOf(descriptor, "cacheKey"))]);
  const ends = Date.parse(textOf(descriptor, "windowEnds"));
  if (Number.isFinite(ends)) rows.push(["Window ends", moment(ends, Date.now())]);
  return rows;
}

function level(walked: Fields): HTMLElement {
  const rules = recordsOf(walked, "rules").map((rule) =>
    element(
      "li",
      { class: flagOf(rule, "chosen") ? "chosen" : undefined },
      flagOf(rule, "chosen") ? badge("chosen", "good") : undefined,
      code(textOf(rule, "rule")),
      note(textOf(rule, "why")),
    )
  );
  const further = numberOf(walked, "furtherRules") ?? 0;
  if (further > 0) rules.push(element("li", {}, note(`and ${countText(further)} more with this key`)));
  const others = textsOf(walked, "otherKeys");
  if (others.length > 0) {
    rules.push(element("li", {}, note(`other keys of this level: ${others.join(", ")}`)));
  }
  return element("li", {}, code(entryText(fieldsOf(walked["entry"]))), element("ul", {}, ...rules));
}

function entryText(entry: Fields): string {
  const value = textOf(entry, "value");
  return value === "" ? textOf(entry, "key") : `${textOf(entry, "key")}=${value}`;
}
