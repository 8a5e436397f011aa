import type { Api } from "./api.ts";
import type { PageClock } from "./clock.ts";
import type { Dialogs } from "./dialogs.ts";
import type { Child } from "./element.ts";
import type { Messages } from "./messages.ts";
import type { RatePoint } from "./rate_points.ts";
import type { Session } from "./session.ts";
import type { Snapshot } from "./snapshot.ts";

/** What was heard of the service last. */
export interface LiveFigures {
  readonly snapshot: Snapshot | undefined;
  /** When that was. */
  readonly heardAt: number;
  readonly points: readonly RatePoint[];
  /** Whether the live figures want a token that is not there. */
  readonly isRefused: boolean;
}

/** What views work with. */
export interface PageParts {
  readonly api: Api;
  readonly session: Session;
  readonly dialogs: Dialogs;
  readonly messages: Messages;
  readonly clock: PageClock;
  readonly live: () => LiveFigures;
  /** What lists are narrowed by, by the names of their controls. */
  readonly filters: Map<string, string>;
  /** Goes to a view, and to one thing in it where that is given. */
  readonly go: (view: string, id?: string) => void;
}

/** A view that is open. */
export interface OpenedView {
  /** What stands below its heading. */
  readonly nodes: readonly Child[];
  /** Told of each new snapshot. */
  readonly update?: () => void;
  /** Told when the reader leaves. */
  readonly close?: () => void;
}

/** A view of the page. */
export interface View {
  /** As it stands in the address. */
  readonly name: string;
  readonly title: string;
  /** What it is about, in a sentence. */
  readonly about: string;
  /** Whether it is nothing without the token of the administration and the webhook service. */
  readonly isAdministration?: boolean;
  /** `id` names one thing of the view, where the address does. */
  readonly open: (parts: PageParts, id: string) => OpenedView;
}
