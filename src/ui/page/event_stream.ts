/** An event of a stream. */
export interface StreamEvent {
  /** `message` by default. */
  readonly name: string;
  readonly text: string;
}

/** The maximum length of an incomplete event. */
const MAX_PENDING = 8_000_000;

/** Parses server-sent events from chunks of text. Ignores comments and other fields. */
export class EventStreamReader {
  #pending = "";
  #name = "";
  #lines: string[] = [];

  /** Reads the next chunk; returns the events that it completes. */
  read(chunk: string): StreamEvent[] {
    this.#pending += chunk;
    const events: StreamEvent[] = [];
    // A carriage return at the end may be half of a line end.
    for (let end = this.#lineEnd(); end !== undefined; end = this.#lineEnd()) {
      const line = this.#pending.slice(0, end.at);
      this.#pending = this.#pending.slice(end.at + end.length);
      const event = this.#take(line);
      if (event !== undefined) events.push(event);
    }
    if (this.#pending.length > MAX_PENDING) throw new Error("Cannot read the stream: an event has no end");
    return events;
  }

  #lineEnd(): { readonly at: number; readonly length: number } | undefined {
    const at = this.#pending.search(/[\r\n]/);
    if (at < 0) return undefined;
    if (this.#pending[at] === "\n") return { at, length: 1 };
    if (at + 1 === this.#pending.length) return undefined;
    return { at, length: this.#pending[at + 1] === "\n" ? 2 : 1 };
  }

  #take(line: string): StreamEvent | undefined {
    if (line === "") return this.#end();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    if (field === "data") this.#lines.push(value);
    return undefined;
  }

  #end(): StreamEvent | undefined {
    const event = { name: this.#name || "message", text: this.#lines.join("\n") };
    const isEmpty = this.#lines.length === 0;
    this.#name = "";
    this.#lines = [];
    return isEmpty ? undefined : event;
  }
}
