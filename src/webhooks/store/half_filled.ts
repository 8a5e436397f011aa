import { StoreError } from "./store.ts";

// Beyond all versions, so that a release that knows nothing of moves refuses the store as well.
const MARK = 1_000_000;

const STATE = 'it is half filled; "weir store move", called again, would fill it';

/** The version that a store has while a move fills it: nobody may work with it. */
export function halfFilledVersion(version: number): number {
  return MARK + version;
}

/** Whether a version says that a store is being filled, or that the filling was broken off. */
export function isHalfFilled(version: number): boolean {
  return version > MARK;
}

/** Throws for a store that a move has not filled to its end. */
export function refuseHalfFilled(shown: string, version: number): void {
  if (isHalfFilled(version)) throw new StoreError("failed", `Cannot open the store "${shown}": ${STATE}`);
}
