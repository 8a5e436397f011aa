import type { Clock } from "../../base/clock.ts";
import type { Api } from "./api.ts";
import type { Dialogs } from "./dialogs.ts";
import type { Child } from "./element.ts";
import type { Filters } from "./filters.ts";
import type { Messages } from "./messages.ts";
import type { Session } from "./session.ts";
import type { Counts, Snapshot } from "./snapshot.ts";

/** The last snapshot of the service. */
interface LiveStatistics {
  readonly snapshot: Snapshot | undefined;
  readonly receivedAt: number;
  /** Of the last two minutes, the newest last. */
  readonly history: readonly Counts[];
  /** True if the live statistics require a token that is not known. */
  readonly requiresToken: boolean;
}

/** The parts of the page that views use. */
export interface PageParts {
  readonly api: Api;
  readonly session: Session;
  readonly dialogs: Dialogs;
  readonly messages: Messages;
  readonly clock: Pick<Clock, "now" | "after">;
  readonly live: () => LiveStatistics;
  readonly filters: Filters;
  /** Opens a view, one record of it, or its list with these filters. */
  readonly go: (view: string, id?: string, filters?: Readonly<Record<string, string>>) => void;
}

/** A view that is open. */
export interface OpenedView {
  readonly nodes: readonly Child[];
  /** Called for each new snapshot. */
  readonly update?: () => void;
  /** Called when the reader leaves. */
  readonly close?: () => void;
}

/** A view of the page. */
export interface View {
  /** In the address of the page. */
  readonly name: string;
  readonly title: string;
  readonly about: string;
  /** True if it requires ADMIN_TOKEN and the webhook service. */
  readonly isAdministration?: boolean;
  /** `id` is the record in the address; empty for the list. */
  readonly open: (parts: PageParts, id: string) => OpenedView;
}
