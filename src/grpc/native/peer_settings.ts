import { ConnectionError, FRAME, MAX_FRAME_BYTES, readUint32 } from "./frames.ts";
import { LIMITS } from "./limits.ts";
import { DEFAULT_WINDOW, MAX_WINDOW, type Sender } from "./sender.ts";

/** Settings by their number (RFC 9113, section 6.5.2). */
export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

const LARGEST_FRAME_BYTES = 2 ** 24 - 1;
const SETTING_BYTES = 6;
const OURS = [
  [SETTING.MAX_CONCURRENT_STREAMS, LIMITS.streams],
  [SETTING.INITIAL_WINDOW_SIZE, LIMITS.streamWindow],
  [SETTING.MAX_HEADER_LIST_SIZE, LIMITS.headerListBytes],
] as const;

/** Sends our settings, and the window of the connection, which no setting names. */
export function greet(sender: Sender): void {
  const { output } = sender;
  output.frame(OURS.length * SETTING_BYTES, FRAME.SETTINGS, 0, 0);
  for (const [setting, value] of OURS) {
    output.byte(0);
    output.byte(setting);
    output.uint32(value);
  }
  sender.windowUpdate(0, LIMITS.connectionWindow - DEFAULT_WINDOW);
}

/** Checks the payload of a SETTINGS frame; answers the last initial window that it names, if any. */
export function readSettings(payload: Uint8Array): number | undefined {
  if (payload.length % SETTING_BYTES !== 0) {
    throw new ConnectionError("FRAME_SIZE_ERROR", "SETTINGS is no multiple of 6 octets");
  }
  let initialWindow: number | undefined;
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const setting = ((payload[at] ?? 0) << 8) | (payload[at + 1] ?? 0);
    const value = readUint32(payload, at + 2);
    if (setting === SETTING.ENABLE_PUSH && value > 1) {
      throw new ConnectionError("PROTOCOL_ERROR", `ENABLE_PUSH is ${value}`);
    }
    if (setting === SETTING.MAX_FRAME_SIZE && (value < MAX_FRAME_BYTES || value > LARGEST_FRAME_BYTES)) {
      throw new ConnectionError("PROTOCOL_ERROR", `MAX_FRAME_SIZE is ${value}`);
    }
    if (setting !== SETTING.INITIAL_WINDOW_SIZE) continue;
    if (value > MAX_WINDOW) {
      throw new ConnectionError("FLOW_CONTROL_ERROR", `INITIAL_WINDOW_SIZE is ${value}`);
    }
    initialWindow = value;
  }
  return initialWindow;
}
