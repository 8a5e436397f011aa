import { ApiProblem, wordsOf } from "./api.ts";
import { button, type Child, element, fill, setHidden } from "./element.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf, textsOf, timeOf } from "./fields.ts";
import { Form } from "./form.ts";
import { badge, code, facts, moment, note, type Tone } from "./pieces.ts";
import { shareBar } from "./bar_chart.ts";
import { countText } from "./text.ts";
import { tokenForm } from "./token_form.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Why a request gets its decision. */
export const explainView: View = {
  name: "explain",
  title: "Explain",
  about: "Which rule applies to a request, and why the others do not. Counters do not change.",
  open: openExplain,
};

function openExplain(parts: PageParts): OpenedView {
  const { api, clock, filters } = parts;
  const given = {
    domain: filters.get("explain", "domain"),
    descriptors: filters.get("explain", "descriptors"),
  };
  const result = element("div", { class: "explained", role: "region", "aria-label": "Explanation" });
  let asked: Fields | undefined;
  const explain = async ({ domain = "", descriptors = "" }: Readonly<Record<string, string>>) => {
    asked = undefined;
    fill(result, []);
    const lines = descriptors.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    const query = { domain: domain.trim(), descriptors: lines };
    const explained = await api.explain(query).catch((error: unknown) => {
      if (!(error instanceof ApiProblem) || error.status !== 401) throw error;
      throw new ApiProblem("The live statistics require a token: see above");
    });
    asked = explained;
    fill(result, [
      element(
        "p",
        {},
        "Domain ",
        code(textOf(explained, "domain")),
        ", ",
        moment(timeOf(explained, "at"), clock.now()),
      ),
      ...recordsOf(explained, "descriptors").map(explainedCard),
      note(countsText(textOf(explained, "counts"))),
    ]);
  };
  const reset = button("Reset these counters", () => {
    const body = asked === undefined ? undefined : requestOf(asked);
    if (body === undefined) {
      return form.show(new ApiProblem("Explain a request first: its counters are reset"));
    }
    void resetCounters(parts, body).then((isDone) => isDone ? explain(form.values) : undefined)
      .catch((error: unknown) => form.show(error));
  });
  const form: Form = new Form({
    submit: "Explain",
    run: explain,
    buttons: [reset],
    look: "form panel",
    fields: [
      { name: "domain", label: "Domain", required: true, value: given.domain },
      {
        name: "descriptors",
        label: "Descriptors",
        kind: "lines",
        required: true,
        value: given.descriptors,
        hint: "One per line, entries separated by commas, such as account=ann,path=/login",
      },
    ],
  });
  const token = element("div");
  const watch = () => {
    const isKnown = parts.session.tokenFor("administration") !== undefined;
    setHidden(reset, !isKnown || parts.session.isReadOnly);
    fill(token, isKnown || parts.live().snapshot?.administration === false ? [] : [tokenOffer(parts)]);
  };
  watch();
  // A request of a rule may lack values, which the reader types.
  if (given.domain !== "" && !/=(?:,|$)/.test(given.descriptors)) form.submit();
  return { nodes: [form.node, result, token], close: parts.session.onChange(watch) };
}

function tokenOffer({ session }: PageParts): HTMLElement {
  const isOpen = session.problem("administration") !== undefined;
  const about = element("summary", {}, "Show and reset counts with ADMIN_TOKEN");
  return element("details", { open: isOpen }, about, tokenForm(session, "administration"));
}

function countsText(counts: string): string {
  return counts === "shown" ? "" : `Counts are ${counts}`;
}

/** The request in the format of the counters API. */
function requestOf(explained: Fields): Fields {
  const descriptors = recordsOf(explained, "descriptors").map((one) => ({
    entries: recordsOf(one, "entries").map((entry) => ({
      key: textOf(entry, "key"),
      value: textOf(entry, "value"),
    })),
  }));
  return { domain: textOf(explained, "domain"), descriptors };
}

/** The explained request; the form may have changed since. */
function requestText(body: Fields): string {
  const descriptors = recordsOf(body, "descriptors").map((one) =>
    recordsOf(one, "entries").map(entryText).join(",")
  );
  return `${textOf(body, "domain")}: ${descriptors.join("; ")}`;
}

async function resetCounters({ api, dialogs, messages }: PageParts, body: Fields): Promise<boolean> {
  const isConfirmed = await dialogs.ask({
    title: "Reset these counters?",
    text: `The usage of ${requestText(body)} in the current windows is deleted.`,
    go: "Reset",
    isDangerous: true,
  });
  if (!isConfirmed) return false;
  try {
    const answer = await api.administer("/counters/reset", { body });
    messages.say(`Counters reset. ${textOf(answer, "otherInstances")}.`);
    return true;
  } catch (error) {
    messages.warn(wordsOf(error));
    return false;
  }
}

const OUTCOMES: Readonly<Record<string, Tone>> = { limited: "good", unlimited: "quiet", replaced: "warn" };

/** The result for one descriptor: the limit, its counter and the path through the levels of the rules. */
function explainedCard(descriptor: Fields): HTMLElement {
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
  const rows: (readonly [string, Child | readonly Child[]])[] = [];
  if (textOf(limit, "rule") !== "") rows.push(["Rule", code(textOf(limit, "rule"))]);
  const modes = ["shadowMode", "quotaMode"].filter((name) => flagOf(limit, name)).map((name) =>
    badge(name === "shadowMode" ? "shadow" : "quota", "warn")
  );
  const windows = recordsOf(descriptor, "windows");
  for (const window of windows) rows.push(...windowFacts(window, window, modes));
  if (windows.length === 0) rows.push(...windowFacts(limit, descriptor, modes));
  const events = textsOf(limit, "events");
  if (events.length > 0) rows.push(["Events", events.join(", ")]);
  return rows;
}

/** An amount, and its counter. */
function windowFacts(
  limit: Fields,
  counter: Fields,
  modes: readonly Child[],
): (readonly [string, Child | readonly Child[]])[] {
  const rows: (readonly [string, Child | readonly Child[]])[] = [];
  const most = numberOf(limit, "maxInFlight") ?? numberOf(limit, "burst") ??
    numberOf(limit, "requestsPerUnit");
  const used = numberOf(counter, "used");
  if (most !== undefined && !flagOf(limit, "unlimited")) rows.push(["Limit", [...amountOf(limit), ...modes]]);
  if (most !== undefined && used !== undefined) {
    const left = numberOf(counter, "remaining") ?? 0;
    const [label, word] = COUNTERS[textOf(limit, "algorithm")] ?? ["Counter", "used"];
    const text = `${countText(used)} ${word}, ${countText(left)} left `;
    rows.push([label, [text, shareBar(most === 0 ? 1 : used / most)]]);
  }
  if (textOf(counter, "cacheKey") !== "") rows.push(["Cache key", code(textOf(counter, "cacheKey"))]);
  const ends = Date.parse(textOf(counter, "windowEnds"));
  if (Number.isFinite(ends)) rows.push(["Window ends", moment(ends, Date.now())]);
  return rows;
}

const COUNTERS: Readonly<Record<string, readonly [label: string, word: string]>> = {
  sliding_window: ["Counter", "in the last window"],
  token_bucket: ["Bucket", "taken"],
  concurrency: ["In flight", "in flight"],
};

function amountOf(limit: Fields): Child[] {
  const seconds = numberOf(limit, "windowSeconds") ?? 0;
  const zone = textOf(limit, "timezone");
  const perUnit = `${countText(numberOf(limit, "requestsPerUnit") ?? 0)} per ${
    textOf(limit, "unit").toLowerCase()
  } `;
  switch (textOf(limit, "algorithm")) {
    case "sliding_window":
      return [perUnit, note(`sliding window of ${seconds} s `)];
    case "token_bucket":
      return [perUnit, note(`token bucket of ${countText(numberOf(limit, "burst") ?? 0)}, ${seconds} s `)];
    case "concurrency":
      return [
        `${countText(numberOf(limit, "maxInFlight") ?? 0)} in flight `,
        note(`lease of ${numberOf(limit, "leaseSeconds") ?? 0} s `),
        ...(textOf(limit, "identifiedBy") === ""
          ? []
          : [note(`identified by ${textOf(limit, "identifiedBy")} `)]),
      ];
    default:
      return [perUnit, note(zone === "" ? `${seconds} s ` : `calendar of ${zone}, ${seconds} s `)];
  }
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
