import { wordsOf } from "./api.ts";
import { type Child, element, setText } from "./element.ts";
import { type Fields, flagOf, recordsOf, textOf } from "./fields.ts";
import { badge, code, filterField, note } from "./pieces.ts";
import { LiveTable } from "./table.ts";
import { countText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** The settings of this instance. */
export const settingsView: View = {
  name: "settings",
  title: "Settings",
  about:
    "The settings that this instance started with, and where each value came from. Secrets are not shown.",
  open: openSettings,
};

const KINDS = [["", "those that are set"], ["all", "all settings"]] as const;

function openSettings(parts: PageParts): OpenedView {
  let settings: readonly Fields[] | undefined;
  const table = new LiveTable<Fields>({
    caption: "Settings",
    key: (setting) => textOf(setting, "name"),
    empty: "No matching settings.",
    columns: [
      { label: "Setting", cell: (setting) => [code(textOf(setting, "name"))] },
      { label: "Value", look: "name", cell: valueOf },
      { label: "From", isAside: true, cell: (setting) => textOf(setting, "source") },
      { label: "Description", look: "prose", cell: (setting) => textOf(setting, "doc") },
    ],
  });
  const kinds = KINDS.map(([value, label]) => element("option", { value }, label));
  const kind = element("select", { id: "settings-kind" }, ...kinds);
  kind.value = parts.filters.get("settings", "show");
  const [label, filter] = filterField(parts, "settings", "part of a name or text", () => show());
  const status = element("p", { class: "note", role: "status" }, "Loading…");
  const problem = element("p", { class: "problem", role: "alert" });
  const show = () => {
    if (settings === undefined) return;
    const part = filter.value.trim().toLowerCase();
    const shown = settings.filter((setting) =>
      (kind.value === "all" || textOf(setting, "source") !== "default") &&
      ["name", "group", "value", "doc"].some((name) => textOf(setting, name).toLowerCase().includes(part))
    );
    table.update(shown);
    setText(status, `${countText(shown.length)} of ${countText(settings.length)}`);
  };
  const load = async () => {
    try {
      settings = recordsOf(await parts.api.settings(), "settings");
      show();
    } catch (error) {
      setText(problem, wordsOf(error));
      setText(status, "");
    }
  };
  kind.addEventListener("change", () => {
    parts.filters.set("settings", { show: kind.value });
    show();
  });
  void load();
  const bar = [element("label", { for: kind.id }, "Show"), kind, label, filter, status];
  return { nodes: [element("div", { class: "bar" }, ...bar), problem, table.node] };
}

function valueOf(setting: Fields): Child[] {
  if (setting["value"] === undefined) {
    return [flagOf(setting, "isSecret") ? badge("not shown", "quiet") : note(textOf(setting, "whenUnset"))];
  }
  const value = textOf(setting, "value");
  return [value === "" ? note("empty") : code(value)];
}
