import { ApiProblem } from "./api.ts";
import { element } from "./element.ts";
import { Form } from "./form.ts";
import type { Session, TokenUse } from "./session.ts";

const TOKEN = /^[\x21-\x7e]+$/;

const ASKED: Readonly<Record<TokenUse, { title: string; label: string; text: string }>> = {
  administration: {
    title: "The administration requires a token",
    label: "ADMIN_TOKEN",
    text: "Enter the value of ADMIN_TOKEN; the start task prints the file that contains it.",
  },
  live: {
    title: "The live statistics require a token",
    label: "DEBUG_TOKEN or ADMIN_TOKEN",
    text: "DEBUG_TOKEN gives access to the live statistics only, ADMIN_TOKEN to the administration as well.",
  },
};

const KEPT =
  "It outlives reloads until the tab is closed or you forget it. Scripts of this address could read it: leave this off on a computer that others use.";

/** Asks for a token, which is kept in memory only unless the reader keeps it for the tab. */
export function tokenForm(session: Session, use: TokenUse): HTMLElement {
  const { title, label, text } = ASKED[use];
  const form = new Form({
    submit: "Use this token",
    fields: [{
      name: "token",
      label,
      kind: "secret",
      hint: "Kept in memory until you forget it, reload or leave the page.",
    }, { name: "isKept", label: "Keep it for this tab", kind: "check", hint: KEPT }],
    run: (values) => {
      const token = (values["token"] ?? "").trim();
      if (!TOKEN.test(token)) {
        throw new ApiProblem("Invalid token: expected visible ASCII without spaces", { field: "token" });
      }
      form.set("token", "");
      session.store(use, token, values["isKept"] === "true");
    },
  });
  const problem = session.problem(use);
  return element(
    "section",
    { class: "panel token" },
    element("h2", {}, title),
    problem === undefined ? undefined : element("p", { class: "problem", role: "alert" }, problem),
    element("p", {}, text),
    form.node,
  );
}
