import type { OpenFolderEvents } from "../../src/base/folder_events.ts";
import type { FolderMessage } from "../../src/base/folder_events_worker.ts";

/** Events of folders, as a test sends them. */
export class FakeFolderEvents {
  /** The folders of each watch so far. */
  readonly watches: (readonly string[])[] = [];
  isClosed = false;
  /** What becomes of the next watches. */
  answer: FolderMessage = { type: "watching" };
  #onMessage: (message: FolderMessage) => void = () => {};

  /** Opens the source of which the test sends the events. */
  readonly open: OpenFolderEvents = ({ onMessage }) => {
    this.#onMessage = onMessage;
    return {
      watch: (folders) => {
        this.watches.push(folders);
        queueMicrotask(() => this.send(this.answer));
      },
      close: () => void (this.isClosed = true),
    };
  };

  /** Sends a message to whoever watches. */
  send(message: FolderMessage): void {
    if (!this.isClosed) this.#onMessage(message);
  }

  /** Sends the event of a change at these paths. */
  change(...paths: readonly string[]): void {
    this.send({ type: "event", kind: "modify", paths });
  }
}
