import { type EndpointRate, type RateState, takeRate } from "../../model/endpoint_rate.ts";
import { settingEach } from "../claiming.ts";
import { integer, text } from "../rows.ts";
import type { ClaimOptions } from "../store.ts";
import { type Row, run, type Work } from "../work.ts";

/** The due deliveries that the rates of their endpoints allow. */
interface AllowedRows {
  readonly rows: readonly Row[];
  /** For how long each has waited for the rate, by its number; 0 or less, or absent, if it has not. */
  readonly waitedMs: ReadonlyMap<number, number>;
}

const SAVE_RATES = settingEach("endpoint", { name: "id", type: "TEXT" }, {
  rate_state: { type: "TEXT" },
  rate_next_at: { type: "BIGINT" },
});
const SAVE_WAITS = settingEach("delivery", { name: "seq", type: "BIGINT" }, {
  waited_ms: { type: "BIGINT", value: (value) => `coalesce(waited_ms, 0) + ${value}` },
});

/**
 * Takes due deliveries, in their order, from the rates of their endpoints, whose rows are locked: the state of a rate is
 * in the store, so that it holds over all processes. `place` is the number of the endpoint of a delivery.
 */
export function* takeRates(
  due: readonly Row[],
  endpoints: readonly Row[],
  { now, onRateLimited = () => {} }: Pick<ClaimOptions, "now" | "onRateLimited">,
): Work<AllowedRows> {
  const limited = endpoints.flatMap((endpoint, place) => endpoint["rate_limit"] === null ? [] : [place]);
  if (limited.length === 0) return { rows: due, waitedMs: NONE };
  const waitedMs = new Map<number, number>();
  const refused = new Set<Row>();
  const changed: { readonly id: string; readonly state: string; readonly nextAt: number | undefined }[] = [];
  const byPlace = Map.groupBy(due, (row) => row["place"]);
  for (const place of limited) {
    const endpoint = endpoints[place];
    const rows = byPlace.get(place) ?? [];
    if (endpoint === undefined || rows.length === 0) continue;
    const id = text(endpoint, "id");
    const rate: EndpointRate = JSON.parse(text(endpoint, "rate_limit"));
    const before = stateOf(endpoint);
    const taken = takeRate(rate, before, { due: rows.length, now });
    const { empty, nextAt, count } = taken;
    for (const [index, row] of rows.entries()) {
      if (index >= count) refused.add(row);
      else if (empty !== undefined) {
        waitedMs.set(integer(row, "seq"), empty.until - Math.max(empty.since, integer(row, "next_at")));
      }
    }
    // A question changes nothing, but for the time since which the bucket is empty.
    if (count > 0 || empty === undefined || nextAt !== endpoint["rate_next_at"]) {
      changed.push({ id, state: JSON.stringify(taken.state), nextAt });
    }
    if (nextAt !== undefined) onRateLimited(id, nextAt - now);
  }
  if (changed.length > 0) {
    const states = changed.map(({ state }) => state);
    yield* run(SAVE_RATES, states, changed.map(({ nextAt }) => nextAt), changed.map(({ id }) => id));
  }
  return { rows: due.filter((row) => !refused.has(row)), waitedMs };
}

const NONE: ReadonlyMap<number, number> = new Map();

/** Adds what retries have waited to their deliveries. */
export function* saveWaits(waits: ReadonlyMap<number, number>): Work<void> {
  if (waits.size > 0) yield* run(SAVE_WAITS, [...waits.values()], [...waits.keys()]);
}

function stateOf(endpoint: Row): RateState | undefined {
  return endpoint["rate_state"] === null ? undefined : JSON.parse(text(endpoint, "rate_state"));
}
