import { element, fill } from "./element.ts";
import { type Fields, flagOf, textOf, timeOf } from "./fields.ts";
import { moment } from "./pieces.ts";
import { actionButton, type RecordAction } from "./record_action.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** A list of deliveries, below the pause of all deliveries and the button that begins or ends it. */
export function withPause(view: View): View {
  return {
    ...view,
    open: (parts, id) => {
      const opened = view.open(parts, id);
      return id === "" ? withBar(parts, opened) : opened;
    },
  };
}

function withBar(parts: PageParts, opened: OpenedView): OpenedView {
  const bar = element("div", { class: "bar", role: "status" });
  const show = (pause: Fields) => fill(bar, barOf(parts, pause, show));
  // The list below reports why the service does not answer.
  parts.api.administer("/deliveries/pause").then(show, () => {});
  return {
    nodes: [bar, ...opened.nodes],
    update: () => opened.update?.(),
    close: () => opened.close?.(),
  };
}

function barOf(parts: PageParts, pause: Fields, show: (pause: Fields) => void): HTMLElement[] {
  const isPaused = flagOf(pause, "paused");
  const since = moment(timeOf(pause, "since"), parts.clock.now());
  const text = `All deliveries are paused by ${textOf(pause, "by")} since `;
  const children = isPaused ? [element("span", { class: "problem" }, text, since)] : [];
  if (!parts.session.isReadOnly) children.push(actionButton(parts, changeOf(parts, isPaused, show)));
  return children;
}

function changeOf({ api }: PageParts, isPaused: boolean, show: (pause: Fields) => void): RecordAction {
  const change = async (verb: "pause" | "resume") => {
    show(await api.administer(`/deliveries/${verb}`, { method: "POST" }));
    return undefined;
  };
  if (isPaused) return { label: "Resume all deliveries", run: () => change("resume") };
  return {
    label: "Pause all deliveries",
    question: {
      title: "Pause all deliveries?",
      text: "No attempt starts on any instance until deliveries are resumed. Events are still accepted.",
      go: "Pause",
    },
    run: () => change("pause"),
  };
}
