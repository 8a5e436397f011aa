import { quotedText } from "./tracing_attribute_text.ts";
import type { EndedSpan } from "./tracing_pack_reader.ts";

/** The caller records the trace, and it is known whether the span above is of another service. */
const FLAGS = 0x101;
const REMOTE_FLAGS = 0x301;
const NANOS_PER_SECOND = 1_000_000_000;

/** The second that was rendered last: spans that are over one after the other mostly have one. */
const last = { seconds: 0, text: "" };

/** A span in the JSON that OTLP has for it. */
export function spanText(span: EndedSpan): string {
  const { shape, traceId, spanId, aboveId, state, isRemote, startMs, endMs, failed, failure } = span;
  const above = aboveId === "" ? "" : `,"parentSpanId":"${aboveId}"`;
  const passed = state === "" ? "" : `,"traceState":${quotedText(state)}`;
  return `${shape.text}${span.attributes}],"traceId":"${traceId}","spanId":"${spanId}"${above}${passed}` +
    `,"startTimeUnixNano":"${nanosText(startMs)}"` +
    `,"endTimeUnixNano":"${nanosText(endMs)}"` +
    `,"status":${failed ? failedText(failure) : "{}"},"flags":${isRemote ? REMOTE_FLAGS : FLAGS}}`;
}

function failedText(message: string | undefined): string {
  return message === undefined ? '{"code":2}' : `{"code":2,"message":${quotedText(message)}}`;
}

/** Milliseconds since the Unix epoch as whole nanoseconds, of which a number cannot hold all digits. */
function nanosText(ms: number): string {
  let seconds = Math.floor(ms / 1_000);
  let nanos = Math.round((ms - seconds * 1_000) * 1_000_000);
  if (nanos >= NANOS_PER_SECOND) {
    seconds++;
    nanos = 0;
  }
  // Digits are put side by side, which holds for no clock before 1970.
  if (seconds <= 0) return `${BigInt(seconds) * BigInt(NANOS_PER_SECOND) + BigInt(nanos)}`;
  if (seconds !== last.seconds) {
    last.seconds = seconds;
    last.text = `${seconds}`;
  }
  // A digit before the nine makes those of them be there that are zero.
  return last.text + `${NANOS_PER_SECOND + nanos}`.slice(1);
}
