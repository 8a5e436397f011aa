import { FLAG, FRAME } from "../../src/grpc/native/frames.ts";
import { call, frame } from "../harness/h2_peer.ts";
import { RawClient } from "../harness/raw_client.ts";
import { until } from "../harness/until.ts";
import type { WeirProcess } from "../harness/weir_process.ts";

const CALLS = 300;
/** So many calls at a time, as a client has to heed a limit of the server. */
const IN_FLIGHT = 50;
const HEALTH = "/grpc.health.v1.Health/Check";

/** Returns whether the process ends by itself within so many connections that make calls and then send GOAWAY. */
export async function abortedByGoaway(weir: WeirProcess, connections: number): Promise<boolean> {
  let isOver = false;
  void weir.exited.then(() => isOver = true);
  for (let count = 0; count < connections && !isOver; count++) await callAndLeave(weir, () => isOver);
  return isOver;
}

async function callAndLeave({ grpcAddress }: WeirProcess, isOver: () => boolean): Promise<void> {
  let client: RawClient;
  try {
    client = await RawClient.connect(grpcAddress, { settings: [], pong: true });
  } catch (error) {
    // The end of the process is heard of a moment later.
    return await until("the end", isOver).then(() => {}, () => Promise.reject(error));
  }
  await using peer = client;
  peer.send(frame(FRAME.SETTINGS, 0, new Uint8Array(0), FLAG.ACK));
  for (let done = 0; done < CALLS; done += IN_FLIGHT) {
    const ids = Array.from({ length: IN_FLIGHT }, (_, index) => 2 * (done + index) + 1);
    peer.send(...ids.map((id) => call(id, HEALTH, new Uint8Array(0))));
    const answered = () => peer.lines.filter((line) => line.includes(" end grpc-status=0")).length;
    await until("the answers", () => peer.closed || answered() === done + IN_FLIGHT, { intervalMs: 2 });
  }
  peer.send(frame(FRAME.GOAWAY, 0, new Uint8Array(8)));
  await peer.end();
}
