import type { Figures } from "../../base/figures.ts";

/** What became of the commands sent to the nodes of a memcached-style cache, since the start. */
export class McTally {
  /** Reads, each of one counter. */
  readSuccess = 0;
  readError = 0;
  /** Steps up and down; a miss is a counter that was not there. */
  incrementSuccess = 0;
  incrementMiss = 0;
  incrementError = 0;
  /** Counters made; not stored are those that were there already. */
  addSuccess = 0;
  addNotStored = 0;
  addError = 0;
  keysRequested = 0;
  keysFound = 0;
  timeouts = 0;
  connectionsOpened = 0;

  /** The same by the names under which dashboards look for them. */
  get counters(): Figures["counters"] {
    return {
      "multiget.success": () => this.readSuccess,
      "multiget.error": () => this.readError,
      "increment.success": () => this.incrementSuccess,
      "increment.miss": () => this.incrementMiss,
      "increment.error": () => this.incrementError,
      "add.success": () => this.addSuccess,
      "add.not_stored": () => this.addNotStored,
      "add.error": () => this.addError,
      keys_requested: () => this.keysRequested,
      keys_found: () => this.keysFound,
      timeouts: () => this.timeouts,
      cx_total: () => this.connectionsOpened,
    };
  }
}
