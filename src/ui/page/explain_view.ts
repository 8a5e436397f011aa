import { ApiProblem, wordsOf } from "./api.ts";
import { button, element, fill, setHidden } from "./element.ts";
import { type Fields, recordsOf, textOf, timeOf } from "./fields.ts";
import { explainedCard } from "./explained_card.ts";
import { Form } from "./form.ts";
import { code, moment, note } from "./pieces.ts";
import { tokenForm } from "./token_form.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** Why a request is decided as it is. */
export const explainView: View = {
  name: "explain",
  title: "Explain",
  about: "Which rule decides about a request, and why the others do not. Nothing is counted.",
  open: openExplain,
};

function openExplain(parts: PageParts): OpenedView {
  const { api, clock } = parts;
  const result = element("div", { class: "explained", role: "region", "aria-label": "Explanation" });
  let asked: Fields | undefined;
  const explain = async ({ domain = "", descriptors = "" }: Readonly<Record<string, string>>) => {
    asked = undefined;
    fill(result, []);
    const lines = descriptors.split("\n").map((line) => line.trim()).filter((line) => line !== "");
    const query = { domain: domain.trim(), descriptors: lines };
    const explained = await api.explain(query).catch((error: unknown) => {
      if (!(error instanceof ApiProblem) || error.status !== 401) throw error;
      throw new ApiProblem("The live figures want a token first: see above");
    });
    asked = explained;
    fill(result, [
      element(
        "p",
        {},
        "Domain ",
        code(textOf(explained, "domain")),
        " at ",
        moment(timeOf(explained, "at"), clock.now()),
      ),
      ...recordsOf(explained, "descriptors").map(explainedCard),
      note(countsText(textOf(explained, "counts"))),
    ]);
  };
  const reset = button("Reset these counters", () => {
    const body = asked === undefined ? undefined : requestOf(asked);
    if (body === undefined) {
      return form.show(new ApiProblem("Explain the request first: its counters are reset"));
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
      { name: "domain", label: "Domain", required: true },
      {
        name: "descriptors",
        label: "Descriptors",
        kind: "lines",
        required: true,
        hint: "One a line, entries with a comma between them, such as account=ann,path=/login",
      },
    ],
  });
  const token = element("div");
  const watch = () => {
    const isKnown = parts.session.tokenFor("administration") !== undefined;
    setHidden(reset, !isKnown);
    fill(token, isKnown || parts.live().snapshot?.administration === false ? [] : [tokenOffer(parts)]);
  };
  watch();
  return { nodes: [form.node, result, token], close: parts.session.onChange(watch) };
}

/** The counts, and the button that resets them, want the token of the administration. */
function tokenOffer({ session }: PageParts): HTMLElement {
  const isOpen = session.problem("administration") !== undefined;
  const about = element("summary", {}, "Show and reset counts, with the administration's token");
  return element("details", { open: isOpen }, about, tokenForm(session, "administration"));
}

function countsText(counts: string): string {
  return counts === "shown" ? "" : `Counts are ${counts}`;
}

/** The same request as the counters' own calls take it. */
function requestOf(explained: Fields): Fields {
  const descriptors = recordsOf(explained, "descriptors").map((one) => ({
    entries: recordsOf(one, "entries").map((entry) => ({
      key: textOf(entry, "key"),
      value: textOf(entry, "value"),
    })),
  }));
  return { domain: textOf(explained, "domain"), descriptors };
}

/** Names the request: it is the one that was explained, whatever stands in the form by now. */
function requestText(body: Fields): string {
  const descriptors = recordsOf(body, "descriptors").map((one) =>
    recordsOf(one, "entries").map((entry) => `${textOf(entry, "key")}=${textOf(entry, "value")}`).join(",")
  );
  return `${textOf(body, "domain")}: ${descriptors.join("; ")}`;
}

async function resetCounters({ api, dialogs, messages }: PageParts, body: Fields): Promise<boolean> {
  const isMeant = await dialogs.ask({
    title: "Reset these counters?",
    text: `What was used in the current windows of ${requestText(body)} is forgotten.`,
    go: "Reset",
    isDangerous: true,
  });
  if (!isMeant) return false;
  try {
    const answer = await api.administer("/counters/reset", { body });
    messages.say(`The counters were reset. ${textOf(answer, "otherInstances")}.`);
    return true;
  } catch (error) {
    messages.warn(wordsOf(error));
    return false;
  }
}
