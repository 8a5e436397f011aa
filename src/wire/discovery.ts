import {
  bytesField,
  integerField,
  listField,
  Message,
  messageField,
  stringField,
  stringsField,
  structField,
} from "./message.ts";
import type { WireStruct } from "./struct.ts";

/** A `google.rpc.Status`, without its details. */
interface WireStatus {
  code: number;
  message: string;
}

/** A `google.protobuf.Any`: a message of some type, as bytes. */
export interface WireAny {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** An `envoy.config.core.v3.Node`: a client of a configuration server. */
interface WireNode {
  id: string;
  cluster: string;
  metadata?: WireStruct | undefined;
}

/** An `envoy.service.discovery.v3.DiscoveryRequest`. */
export interface WireDiscoveryRequest {
  readonly versionInfo: string;
  readonly node?: WireNode | undefined;
  readonly resourceNames: readonly string[];
  readonly typeUrl: string;
  readonly responseNonce: string;
  /** Present only in a refusal. */
  readonly errorDetail?: WireStatus | undefined;
}

/** An `envoy.service.discovery.v3.DiscoveryResponse`. */
export interface WireDiscoveryResponse {
  readonly versionInfo: string;
  readonly resources: readonly WireAny[];
  readonly typeUrl: string;
  readonly nonce: string;
}

const STATUS = new Message<WireStatus>("Status", { code: integerField(1, "int32"), message: stringField(2) });
const ANY = new Message<WireAny>("Any", { typeUrl: stringField(1), value: bytesField(2) });
const NODE = new Message<WireNode>("Node", {
  id: stringField(1),
  cluster: stringField(2),
  metadata: structField(3),
});

/** Reads and writes requests. */
export const DISCOVERY_REQUEST = new Message<WireDiscoveryRequest>("DiscoveryRequest", {
  versionInfo: stringField(1),
  node: messageField(2, NODE),
  resourceNames: stringsField(3),
  typeUrl: stringField(4),
  responseNonce: stringField(5),
  errorDetail: messageField(6, STATUS),
});

/** Reads and writes responses. */
export const DISCOVERY_RESPONSE = new Message<WireDiscoveryResponse>("DiscoveryResponse", {
  versionInfo: stringField(1),
  resources: listField(2, () => ANY),
  typeUrl: stringField(4),
  nonce: stringField(5),
});
