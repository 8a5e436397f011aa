import { getHeapStatistics } from "node:v8";

/** What a folder of rule files may hold; reading more might end the process for want of memory. */
export interface RuleFileLimits {
  readonly fileBytes: number;
  /** Of all rule files of the folder together. */
  readonly allBytes: number;
  /** Words, marks and line ends of one file: what reading costs hangs on these. */
  readonly fileParts: number;
  readonly allParts: number;
}

const MEBIBYTE = 1024 * 1024;
/** Measured at 430 in the costliest of texts; the rest is for what was read before. */
const HEAP_BYTES_PER_PART = 550;
/** About what a file of the largest size has when it holds ordinary rules. */
const MAX_FILE_PARTS = 8_000_000;

/** The limits where the heap may grow to this size; that of this process when absent. */
export function ruleFileLimits(heapBytes: number = getHeapStatistics().heap_size_limit): RuleFileLimits {
  const fileParts = Math.min(MAX_FILE_PARTS, Math.floor(heapBytes / HEAP_BYTES_PER_PART));
  return { fileBytes: 16 * MEBIBYTE, allBytes: 32 * MEBIBYTE, fileParts, allParts: 2 * fileParts };
}
