import type { Block } from "./block_reader.ts";

/** The problem that the header blocks of an answer report; undefined for a success. */
export function statusProblem(first: Block, last: Block): string | undefined {
  const isOk = first.httpStatus === "200" && last.grpcStatus === "0";
  if (!isOk) {
    return [statusesOf(first, last), last.grpcMessage ?? ""].filter((part) => part !== "").join(": ");
  }
  const { contentType = "none" } = first;
  return contentType.startsWith("application/grpc") ? undefined : `content-type ${contentType}`;
}

/** The statuses of an answer, as a text to count by. */
export function statusesOf(first: Block, last: Block): string {
  return `http ${first.httpStatus ?? "none"}, grpc ${last.grpcStatus ?? "none"}`;
}
