import { until } from "./until.ts";

/** Reads server-sent events as they come. */
export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  /** Reads the body of an answer that has one. */
  constructor({ body }: Response) {
    if (body === null) throw new Error("Cannot read events: the answer has no body");
    this.#reader = body.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The next event as it was sent, without the empty line after it; absent at the end of the stream. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const event = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return event;
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += value;
    }
  }

  /** The JSON of the next event. */
  async data(): Promise<unknown> {
    const event = await this.next();
    const data = event?.split("\n").find((line) => line.startsWith("data: "));
    return JSON.parse(data?.slice("data: ".length) ?? "null");
  }

  /** Returns whether the peer ends or cuts the stream before long, past events that come before. */
  async ended(): Promise<boolean> {
    let hasEnded = false;
    void this.#readAll().catch(() => {}).finally(() => hasEnded = true);
    return await until("the end of the stream", () => hasEnded);
  }

  async #readAll(): Promise<void> {
    while (await this.next() !== undefined);
  }

  /** Leaves. */
  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
  }
}
