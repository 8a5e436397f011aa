import { makeCertificates } from "../../harness/certificates.ts";
import { Shared } from "./settings_case.ts";

/** The certificates of a file's tests; those that a test writes to are its own. */
export const CERTIFICATES = Shared.of(makeCertificates, "openssl");
