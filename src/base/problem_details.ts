/** Reason phrases by HTTP status. */
export const STATUS_PHRASES: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
};

/** The media type of `problemDetails`. */
export const PROBLEM_TYPE = "application/problem+json";

/**
 * Problem details (RFC 9457) of a status with further members, as JSON. The type is `about:blank`: the status and the
 * members say it all.
 */
export function problemDetails(
  status: number,
  members: Readonly<Record<string, string | readonly string[] | undefined>>,
): string {
  return JSON.stringify({
    type: "about:blank",
    title: STATUS_PHRASES[status] ?? "Error",
    status,
    ...members,
  });
}
