import { ApiProblem, wordsOf } from "./api.ts";
import { type Child, element, fill, setText } from "./element.ts";
import { type Fields, fieldsOf, flagOf, numberOf, recordsOf, textOf } from "./fields.ts";
import { QUOTA_PROBLEMS, shownMetrics } from "./metric_rows.ts";
import { badge, code, emptyNote, facts, filterField, moreNote, note } from "./pieces.ts";
import { Polling } from "./polling.ts";
import { LiveTable } from "./table.ts";
import { countText, NOTHING, quotaRateText, spanText } from "./text.ts";
import type { OpenedView, PageParts, View } from "./view.ts";

/** The buckets of quotas, and what each client may use of them. */
export const quotasView: View = {
  name: "quotas",
  title: "Quotas",
  about:
    "The buckets that Envoys report, those with the most demand for their limit first, and the share of each client.",
  open: openQuotas,
};

/** Envoy reports every five seconds. */
const REFRESH_MS = 5_000;
const TYPING_MS = 300;
const MAX_BUCKETS = 100;
const MAX_ROWS = 500;
const NEXT_STEP =
  "No client reports buckets. Configure the filter envoy.filters.http.rate_limit_quota of Envoy with " +
  "the gRPC port of this service, as docs/quotas.md shows.";

/** One client of a bucket; `client` is undefined if all of its clients are beyond the maximum. */
interface QuotaRow {
  readonly key: string;
  readonly bucket: Fields;
  readonly client: Fields | undefined;
  /** Clients that are not shown, after the last one that is. */
  readonly more: number;
}

interface Shown {
  readonly answer: Fields;
  /** The filter that it was asked with. */
  readonly text: string;
}

function openQuotas(parts: PageParts): OpenedView {
  const { api, clock, live } = parts;
  const table = quotaTable();
  const [label, filter] = filterField(parts, "quotas", "part of a rule or pair", () => {
    cancel();
    cancel = clock.after(TYPING_MS, () => polling.read());
  });
  const status = element("p", { class: "note", role: "status" }, "Loading…");
  const problem = element("p", { class: "problem", role: "alert" });
  const refusals = element("div");
  const empty = element("div");
  const show = ({ answer, text }: Shown) => {
    const quotas = recordsOf(answer, "quotas");
    const rows = quotas.flatMap(rowsOf);
    const all = numberOf(answer, "buckets") ?? 0;
    setText(problem, textOf(answer, "why"));
    const isEmpty = rows.length === 0 && text === "";
    fill(
      empty,
      isEmpty && textOf(answer, "why") === ""
        ? [element("section", { class: "panel" }, emptyNote(NEXT_STEP))]
        : [],
    );
    table.update(rows.slice(0, MAX_ROWS));
    table.node.hidden = isEmpty;
    setText(
      status,
      `Buckets: ${countText(new Set(rows.slice(0, MAX_ROWS).map(({ bucket }) => bucket)).size)} of ${
        countText(all)
      }`,
    );
  };
  const polling = new Polling<Shown>({
    clock,
    everyMs: REFRESH_MS,
    read: async () => {
      const text = filter.value.trim();
      return { answer: await api.quotas({ text, limit: String(MAX_BUCKETS) }), text };
    },
    show,
    fail: (error) => {
      setText(problem, wordsOf(error));
      setText(status, "");
      return error instanceof ApiProblem && error.status === 401;
    },
  });
  let cancel = () => {};
  polling.read();
  const update = () => {
    const { snapshot, history } = live();
    const counts = snapshot === undefined ? [] : shownMetrics(QUOTA_PROBLEMS, snapshot, history);
    const seen = counts.filter(({ total }) => total > 0);
    const rows = seen.map(({ label, total, recent }) =>
      [label, `${countText(total)} since the start, ${countText(recent)} in the last two minutes`] as const
    );
    fill(refusals, rows.length === 0 ? [] : [facts(rows)]);
  };
  update();
  const close = () => {
    cancel();
    polling.close();
  };
  const bar = element("div", { class: "bar" }, label, filter, status);
  return { nodes: [bar, problem, refusals, empty, table.node], update, close };
}

function quotaTable(): LiveTable<QuotaRow> {
  return new LiveTable<QuotaRow>({
    caption: "Buckets and their clients",
    key: ({ key }) => key,
    empty: "No matching buckets.",
    columns: [
      { label: "Bucket", look: "name", cell: ({ bucket }) => [code(pairsOf(bucket))] },
      { label: "Rule", look: "name", cell: ({ bucket }) => ruleOf(bucket) },
      { label: "Limit", cell: ({ bucket }) => limitOf(bucket) },
      { label: "Client", look: "name", cell: clientOf },
      number("Demand", "demand"),
      number("Share", "share"),
      number("In force", "inForce"),
      {
        label: "Last report",
        look: "number",
        cell: ({ client }) =>
          client === undefined
            ? NOTHING
            : `${spanText((numberOf(client, "secondsSinceReport") ?? 0) * 1_000)} ago`,
        order: byNumber("secondsSinceReport"),
      },
      { label: "Requests", cell: ({ client }) => client === undefined ? NOTHING : textOf(client, "why") },
    ],
  });
}

function rowsOf(bucket: Fields): QuotaRow[] {
  const clients = recordsOf(bucket, "clients");
  const more = (numberOf(bucket, "clientCount") ?? 0) - clients.length;
  const name = `${textOf(bucket, "domain")}\n${pairsOf(bucket)}`;
  if (clients.length === 0) return [{ key: name, bucket, client: undefined, more }];
  return clients.map((client, index) => ({
    key: `${name}\n${index}`,
    bucket,
    client,
    more: index === clients.length - 1 ? more : 0,
  }));
}

function pairsOf(bucket: Fields): string {
  return recordsOf(bucket, "bucket").map((pair) => `${textOf(pair, "key")}=${textOf(pair, "value")}`).join(
    ",",
  );
}

function ruleOf(bucket: Fields): Child[] {
  const rule = textOf(bucket, "rule");
  return rule === "" ? [note(`${textOf(bucket, "domain")}: no rule`)] : [code(rule)];
}

function limitOf(bucket: Fields): Child[] {
  const limit = fieldsOf(bucket["limit"]);
  const part = numberOf(bucket, "part");
  const shadow = numberOf(limit, "shadowPerSecond");
  switch (textOf(limit, "kind")) {
    case "rate": {
      const text = `${quotaRateText(numberOf(limit, "perSecond"))}/s`;
      return part === undefined ? [text] : [text, note(` ${quotaRateText(part)}/s here`)];
    }
    case "deny":
      return ["0"];
    case "impossible":
      return [badge("in flight", "warn")];
    default:
      return shadow === undefined ? ["none"] : [`${quotaRateText(shadow)}/s `, badge("shadow", "warn")];
  }
}

function clientOf({ client, more }: QuotaRow): Child[] {
  if (client === undefined) return [note(`${countText(more)} not shown`)];
  const name = textOf(client, "name");
  const gone = flagOf(client, "isConnected") ? undefined : badge("disconnected", "warn");
  return [name === "" ? note("without a name") : code(name), gone, moreNote(more)];
}

function number(label: string, name: string) {
  const cell = ({ client }: QuotaRow) => {
    if (client === undefined) return NOTHING;
    const rate = numberOf(client, name);
    return rate === undefined ? "all" : `${quotaRateText(rate)}/s`;
  };
  return { label, look: "number", cell, order: byNumber(name) };
}

/** Without a number all requests pass. */
function byNumber(name: string): (a: QuotaRow, b: QuotaRow) => number {
  const valueOf = ({ client }: QuotaRow) =>
    client === undefined ? -1 : numberOf(client, name) ?? Number.MAX_VALUE;
  return (a, b) => valueOf(a) - valueOf(b);
}
