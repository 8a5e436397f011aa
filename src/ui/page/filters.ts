/** The values of the filters of each view. Those of the view that is open are in the address, so that a link has them. */
export class Filters {
  readonly #values = new Map<string, Record<string, string>>();

  /** The value of a filter; empty if it is not set. */
  get(view: string, parameter: string): string {
    return this.#values.get(view)?.[parameter] ?? "";
  }

  /** Sets some filters of a view that is open, keeps the others and changes the address without a new entry of the history. */
  set(view: string, values: Readonly<Record<string, string>>): void {
    const all = Object.entries({ ...this.#values.get(view), ...values });
    this.#values.set(view, Object.fromEntries(all.filter(([, value]) => value !== "")));
    history.replaceState(history.state, "", addressOf(view, "", this.#values.get(view)));
  }

  /** The filters of an address replace all others of its view; without any the view has those that it had before. */
  follow(view: string, query: string): void {
    if (query !== "") this.#values.set(view, Object.fromEntries(new URLSearchParams(query)));
    else if (this.#values.has(view)) this.set(view, {});
  }
}

/** The address of a view, of a record of it, or of its list with filters. */
export function addressOf(view: string, id: string, filters: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams(filters);
  const path = `#${view}${id === "" ? "" : `/${encodeURIComponent(id)}`}`;
  return query.size === 0 ? path : `${path}?${query}`;
}
