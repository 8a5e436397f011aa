import { element } from "./element.ts";
import { textOf, timeOf } from "./fields.ts";
import { keepFilter } from "./keep_filter.ts";
import { code, moment } from "./pieces.ts";
import { RecordList } from "./record_list.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** What was done, and by whom. */
export const auditView: View = {
  name: "audit",
  title: "Audit",
  about: "What was done, by whom, and which deliveries failed for good.",
  isAdministration: true,
  open: openAudit,
};

function openAudit(parts: PageParts): OpenedView {
  const action = element("input", {
    id: "audit-action",
    type: "search",
    autocomplete: "off",
    placeholder: "such as delivery.failed",
  });
  keepFilter(parts, action, () => list.restart());
  const list: RecordList = new RecordList(parts, {
    path: "/audit",
    caption: "Audit",
    empty: "Nothing like this was done.",
    query: () => ({ event: action.value.trim() }),
    columns: [
      { label: "When", cell: (one) => [moment(timeOf(one, "at"), parts.clock.now())] },
      { label: "Action", look: "name", cell: (one) => [code(textOf(one, "action"))] },
      { label: "By", look: "name", cell: (one) => textOf(one, "actor") },
      { label: "Of", look: "name", cell: (one) => [code(textOf(one, "object"))] },
      { label: "Details", look: "prose", cell: (one) => [code(JSON.stringify(one["details"]) ?? "")] },
    ],
  });
  const bar = element("div", { class: "bar" }, element("label", { for: "audit-action" }, "Action"), action);
  return { nodes: [bar, list.node], close: () => list.close() };
}
