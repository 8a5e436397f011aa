import { wordsOf } from "./api.ts";
import { factsOf } from "./field_display.ts";
import { type Fields, flagOf, numberOf, textOf, textsOf } from "./fields.ts";
import { badge, code, facts, linkTo, panel } from "./pieces.ts";
import type { RecordAction, Row } from "./record_action.ts";
import { parsedValues, requestFields } from "./record_form.ts";
import { endpointChoices } from "./record_filters.ts";
import { recordListView } from "./record_list.ts";
import { RecordView } from "./record_view.ts";
import { ENDPOINT_REPLAY, REPLAYS } from "./resources.ts";
import { countText, NOTHING, shortId } from "./text.ts";
import { momentIn, wordsIn } from "./typed_text.ts";
import type { OpenedView, PageParts } from "./view.ts";

/** Replays of events, and retries of deliveries. */
export const replaysView = recordListView({
  resource: REPLAYS,
  title: "Replays",
  about: "Past events that are sent to an endpoint again, and retries of many deliveries.",
  next: ["A replay sends past events to an endpoint again:", "weir endpoints replay ID --since 24h"],
  loads: { endpointId: endpointChoices },
  columns: [
    "state",
    { label: "Of", cell: ({ record }) => [badge(textOf(record, "source"))] },
    { label: "Done", look: "number", cell: ({ record }) => progressOf(record) },
    {
      label: "Endpoint",
      look: "name",
      cell: ({ record, labelOf }) => {
        const id = textOf(record, "endpointId");
        return [code(labelOf(id) ?? (shortId(id) || "all"))];
      },
    },
    { label: "Selection", look: "name", cell: ({ record }) => selectionOf(record) },
    "createdAt",
  ],
  record: { label: "Replay", open: openReplay },
});

function progressOf(replay: Fields): string {
  const done = countText(numberOf(replay, "done") ?? 0);
  const count = numberOf(replay, "count");
  return count === undefined ? done : `${done} of ${countText(count)}`;
}

function selectionOf(replay: Fields) {
  const filter = JSON.stringify(replay["filter"]) ?? "";
  const words = [...textsOf(replay, "events"), textOf(replay, "deliveryState"), filter].filter((word) =>
    word !== ""
  );
  return words.length === 0 ? NOTHING : [code(words.join(" "))];
}

function actionsOf({ parts: { api }, record, path, refresh }: Row): readonly RecordAction[] {
  if (textOf(record, "state") !== "running") return [];
  return [{
    label: "Cancel",
    question: {
      title: "Cancel this replay?",
      text: "The deliveries that it has created or retried stay.",
      go: "Cancel the replay",
    },
    run: async () => {
      await api.administer(`${path}/cancel`, { method: "POST" });
      return "Replay cancelled.";
    },
    then: refresh,
  }];
}

function openReplay(parts: PageParts, id: string): OpenedView {
  return new RecordView(parts, {
    list: "replays",
    id,
    show: (replay, now) => {
      const endpointId = textOf(replay, "endpointId");
      const filter = JSON.stringify(replay["filter"]);
      const own = {
        done: progressOf(replay),
        count: undefined,
        endpointId: endpointId === "" ? "all" : [linkTo(parts, endpointId, "endpoints", endpointId)],
        filter: filter === undefined ? undefined : [code(filter)],
      };
      const deliveries = (text: string, state: string) => [
        linkTo(parts, text, "deliveries", "", { replayId: id, state }),
        " ",
      ];
      const links = [...deliveries("All its deliveries", ""), ...deliveries("Failed ones", "failed")];
      return [panel("Replay", facts([...factsOf(REPLAYS.fields, replay, now, own), ["Deliveries", links]]))];
    },
    actions: actionsOf,
  });
}

/** A replay to start: the path of the call, its body, and the words of what it counts. */
interface CountedReplay {
  readonly path: string;
  readonly body: Fields;
  readonly noun: string;
  readonly go: string;
}

/** Counts what a replay would send or retry; returns what asks whether to start it, and shows its progress. */
export async function countReplay(
  parts: PageParts,
  { path, body, noun, go }: CountedReplay,
): Promise<() => Promise<void>> {
  const { api, dialogs, messages } = parts;
  const counted = await api.administer(path, { body: { ...body, dryRun: true } });
  const count = numberOf(counted, "count") ?? 0;
  const atLeast = flagOf(counted, "isPartial") ? "At least " : "";
  const text = `${atLeast}${countText(count)} ${noun}. They are sent in the background.`;
  return async () => {
    if (count === 0) return messages.say(`No ${noun}.`);
    if (!await dialogs.ask({ title: `${go}?`, text, go })) return;
    parts.go("replays", textOf(await api.administer(path, { body }), "id"));
  };
}

/** Asks which events an endpoint gets again. */
export function askReplay({ parts, record, path }: Row): void {
  const fields = requestFields(ENDPOINT_REPLAY, {
    until: { parse: (text, name) => text === "" ? "" : momentIn(text, name), hint: "Now when empty" },
    events: { parse: (text) => text.trim() === "" ? "" : wordsIn(text) },
  });
  parts.dialogs.form({
    title: "Replay events",
    text: `Past events are sent to ${
      textOf(record, "url")
    } again, as new deliveries. They are counted first.`,
    submit: "Count them",
    fields,
    run: async (values) => {
      const given = Object.entries(parsedValues(fields, values)).filter(([, value]) => (value ?? "") !== "");
      const body = Object.fromEntries(given);
      const start = await countReplay(parts, {
        path: `${path}/replay`,
        body,
        noun: "matching events",
        go: "Replay them",
      });
      void start().catch((error: unknown) => parts.messages.warn(wordsOf(error)));
      return undefined;
    },
  });
}
