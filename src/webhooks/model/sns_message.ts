import { verify, type X509Certificate } from "node:crypto";
import { isJsonObject, type JsonValue } from "../../base/exact_json.ts";
import { parseTime } from "../../base/rfc3339.ts";
import { SNS_TOPIC } from "../resources/trigger_verification.ts";

/** The fields that Amazon SNS signs, in their order, by the type of a message. */
const SIGNED = {
  Notification: ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
  SubscriptionConfirmation: [
    ...["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"] as const,
  ],
  UnsubscribeConfirmation: [
    ...["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"] as const,
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type SnsType = keyof typeof SIGNED;

/** A message of Amazon SNS whose fields have their forms. */
export interface SnsMessage {
  readonly type: SnsType;
  readonly id: string;
  /** The ARN of the topic. */
  readonly topic: string;
  /** The published text, or a sentence about a subscription. */
  readonly text: string;
  /** Milliseconds since the Unix epoch. */
  readonly time: number;
  /** The version 1 signs with SHA-1. */
  readonly hash: "sha1" | "sha256";
  readonly signature: Uint8Array;
  readonly signed: Uint8Array;
  readonly certificateUrl: string;
  /** The URL and the token of a confirmation; empty in a notification. */
  readonly subscribeUrl: string;
  readonly token: string;
}

const MAX_FIELD_LENGTH = 4_096;
const ID = /^[\w-]{1,255}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const HASHES: Readonly<Record<string, SnsMessage["hash"]>> = { 1: "sha1", 2: "sha256" };
/** They separate the fields of the signed text; only the message itself may have them. */
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f]/;

/** The message that a body is; nothing for another body. */
export function snsMessageOf(body: Uint8Array): SnsMessage | undefined {
  const fields = objectOf(body);
  const type = SNS_TYPES.find((known) => known === fields["Type"]);
  if (type === undefined) return undefined;
  const names: readonly string[] = SIGNED[type];
  const isMissing = (name: string) => typeof fields[name] !== "string" && name !== "Subject";
  if (names.some(isMissing)) return undefined;
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value !== "string") continue;
    if (name !== "Message" && (value.length > MAX_FIELD_LENGTH || CONTROLS.test(value))) return undefined;
    texts.set(name, value);
  }
  const text = (name: string) => texts.get(name) ?? "";
  const time = parseTime(text("Timestamp"));
  const hash = HASHES[text("SignatureVersion")];
  const isFormed = ID.test(text("MessageId")) && BASE64.test(text("Signature"));
  if (time === undefined || hash === undefined || !isFormed) return undefined;
  const signed = names.flatMap((name) => texts.has(name) ? [`${name}\n${text(name)}\n`] : []);
  return {
    type,
    id: text("MessageId"),
    topic: text("TopicArn"),
    text: text("Message"),
    time,
    hash,
    signature: Uint8Array.fromBase64(text("Signature")),
    signed: new TextEncoder().encode(signed.join("")),
    certificateUrl: text("SigningCertURL"),
    subscribeUrl: text("SubscribeURL"),
    token: text("Token"),
  };
}

const SNS_TYPES: readonly SnsType[] = ["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"];

function objectOf(body: Uint8Array): Readonly<Record<string, JsonValue>> {
  try {
    const value: JsonValue = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** The host of a topic in its region, and the names that its certificates may have. */
function hostOf(topic: string): { readonly host: string; readonly names: readonly string[] } {
  const [, partition, region] = new RegExp(SNS_TOPIC).exec(topic) ?? [];
  if (region === undefined) throw new RangeError(`Cannot read the topic "${topic}"`);
  const domain = partition === "aws-cn" ? "amazonaws.com.cn" : "amazonaws.com";
  const host = `sns.${region}.${domain}`;
  return {
    host,
    names: [`sns.${domain}`, host, `sns-${region}.${domain}`, `sns-signing.${region}.${domain}`],
  };
}

/** Returns whether the certificate of a message is at the host of its topic; any other URL may be that of an attacker. */
export function isCertificateAtHost({ topic, certificateUrl }: SnsMessage): boolean {
  const start = `https://${hostOf(topic).host}/SimpleNotificationService-`;
  return certificateUrl.startsWith(start) &&
    /^[A-Za-z0-9]{1,64}\.pem$/.test(certificateUrl.slice(start.length));
}

/** Returns whether the URL of a confirmation does nothing but confirm the subscription to its topic. */
export function isConfirmationAtHost({ topic, subscribeUrl, token }: SnsMessage): boolean {
  const start = `https://${hostOf(topic).host}/?`;
  if (!subscribeUrl.startsWith(start) || subscribeUrl.includes("#")) return false;
  const query = new URLSearchParams(subscribeUrl.slice(start.length));
  const expected = { Action: "ConfirmSubscription", TopicArn: topic, Token: token };
  return token !== "" && query.size === Object.keys(expected).length &&
    Object.entries(expected).every(([name, value]) => query.get(name) === value);
}

/** Fewer bits are no protection. */
const MIN_KEY_BITS = 2_048;

/**
 * Returns whether a chain may sign messages of a topic: each certificate is valid now and issued by the next one, and the
 * first has a name of Amazon SNS. Amazon publishes the first one alone, and TLS proves that it does.
 */
export function isUsableChain(chain: readonly X509Certificate[], topic: string, now: number): boolean {
  const [leaf] = chain;
  if (leaf === undefined || !hostOf(topic).names.some((name) => leaf.checkHost(name) !== undefined)) {
    return false;
  }
  const { asymmetricKeyType, asymmetricKeyDetails } = leaf.publicKey;
  if (asymmetricKeyType !== "rsa" || (asymmetricKeyDetails?.modulusLength ?? 0) < MIN_KEY_BITS) return false;
  return chain.every((certificate, index) => {
    const { validFrom, validTo } = certificate;
    const issuer = chain[index + 1];
    const isIssued = issuer === undefined ||
      certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
    return Date.parse(validFrom) <= now && now <= Date.parse(validTo) && isIssued;
  });
}

/** Returns whether the owner of a certificate has signed a message. */
export function isSignedBy({ hash, signed, signature }: SnsMessage, { publicKey }: X509Certificate): boolean {
  return verify(hash, signed, publicKey, signature);
}

/** The input of a workflow: what was published if it is a JSON object, and any other text as its member `body`. */
export function snsInputOf({ text }: SnsMessage): string {
  return isObjectText(text) ? text : JSON.stringify({ body: text });
}

function isObjectText(text: string): boolean {
  if (!text.trimStart().startsWith("{")) return false;
  try {
    return isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}

/** A warning about the signature of a message, if it is weak. */
export function snsWeaknessOf({ hash }: SnsMessage): string | undefined {
  return hash === "sha1" ? "SHA-1 is weak: set the SignatureVersion of the topic to 2" : undefined;
}
