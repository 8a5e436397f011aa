/** An event of a stream. */
interface StreamEvent {
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
    // A carriage return at the end may be half of a line end.
    const lines = (this.#pending + chunk).split(/\r\n|\n|\r(?!$)/);
    this.#pending = lines.pop() ?? "";
    if (this.#pending.length > MAX_PENDING) throw new Error("Cannot read the stream: an event has no end");
    return lines.flatMap((line) => this.#take(line) ?? []);
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
