import { ApiProblem } from "./api.ts";
import { element } from "./element.ts";
import { Form } from "./form.ts";
import type { Session, TokenUse } from "./session.ts";

/** What headers can carry as a token. */
const TOKEN = /^[\x21-\x7e]+$/;

const ASKED: Readonly<Record<TokenUse, { title: string; label: string; text: string }>> = {
  administration: {
    title: "The administration wants its token",
    label: "ADMIN_TOKEN",
    text: "It is the token that ADMIN_TOKEN of the service holds, or the file that the start task named.",
  },
  live: {
    title: "The live figures want a token",
    label: "DEBUG_TOKEN or ADMIN_TOKEN",
    text: "Either opens them: DEBUG_TOKEN the figures alone, ADMIN_TOKEN the administration as well.",
  },
};

/** Asks for a token. It goes to the memory of this page and nowhere else. */
export function tokenForm(session: Session, use: TokenUse): HTMLElement {
  const { title, label, text } = ASKED[use];
  const form = new Form({
    submit: "Use this token",
    fields: [{
      name: "token",
      label,
      kind: "secret",
      hint: "Kept in the memory of this page until you forget it, reload or leave.",
    }],
    run: (values) => {
      const token = (values["token"] ?? "").trim();
      if (!TOKEN.test(token)) {
        throw new ApiProblem("A token is wanted: visible ASCII without a space", { field: "token" });
      }
      form.set("token", "");
      session.take(use, token);
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
