import { createServer } from "node:net";

const thread = globalThis as unknown as {
  postMessage(message: unknown): void;
  onmessage: (event: MessageEvent<string>) => void;
};

/** A thread that answers each connection, and each message, while the other thread stands still. */
const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", () => socket.write("answer"));
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  thread.postMessage(typeof address === "object" ? address?.port : 0);
});
thread.onmessage = ({ data }) => {
  if (data === "close") server.close(() => thread.postMessage("closed"));
  else thread.postMessage("answer");
};
