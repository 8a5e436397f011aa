import { createServer } from "node:net";

const thread = globalThis as unknown as {
  postMessage(message: unknown): void;
  onmessage: (event: MessageEvent<"question" | "close" | Int32Array<SharedArrayBuffer>>) => void;
};
/** Counts the answers that left, for a thread that stands still until they did. */
let answers = new Int32Array(new SharedArrayBuffer(4));
const counted = () => void Atomics.add(answers, 0, 1);

/** A thread that answers each connection, and each message, while the other thread stands still. */
const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", () => socket.write("answer", counted));
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  thread.postMessage(typeof address === "object" ? address?.port : 0);
});
thread.onmessage = ({ data }) => {
  if (data === "close") return void server.close(() => thread.postMessage("closed"));
  if (data !== "question") return void (answers = data);
  thread.postMessage("answer");
  counted();
};
