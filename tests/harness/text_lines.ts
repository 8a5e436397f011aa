/** Cuts a stream of texts into lines, without their line breaks; the last line needs none. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let open = "";
    super({
      transform(chunk, controller) {
        const lines = (open + chunk).split(/\r?\n/);
        open = lines.pop() ?? "";
        for (const line of lines) controller.enqueue(line);
      },
      flush(controller) {
        if (open !== "") controller.enqueue(open);
      },
    });
  }
}
