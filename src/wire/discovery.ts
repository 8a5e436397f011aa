import { WireReader } from "./reader.ts";
import { readStructField, type WireStruct, writeStructField } from "./struct.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** A `google.rpc.Status`, without its details. */
export interface WireStatus {
  code: number;
  message: string;
}

/** A `google.protobuf.Any`: a message of some type, as bytes. */
export interface WireAny {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

/** An `envoy.config.core.v3.Node`: a client of a configuration server. */
export interface WireNode {
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

/** Reads a request. */
export function decodeDiscoveryRequest(bytes: Uint8Array): WireDiscoveryRequest {
  const reader = new WireReader(bytes, "DiscoveryRequest");
  const resourceNames: string[] = [];
  let versionInfo = "";
  let node: WireNode | undefined;
  let typeUrl = "";
  let responseNonce = "";
  let errorDetail: WireStatus | undefined;
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) versionInfo = reader.string();
    else if (tag === (2 << 3 | LENGTH)) node = readNode(reader, node);
    else if (tag === (3 << 3 | LENGTH)) resourceNames.push(reader.string());
    else if (tag === (4 << 3 | LENGTH)) typeUrl = reader.string();
    else if (tag === (5 << 3 | LENGTH)) responseNonce = reader.string();
    else if (tag === (6 << 3 | LENGTH)) errorDetail = readStatus(reader, errorDetail);
    else reader.skip();
  }
  return { versionInfo, node, resourceNames, typeUrl, responseNonce, errorDetail };
}

/** Writes a request. */
export function encodeDiscoveryRequest(request: WireDiscoveryRequest): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.string(1, request.versionInfo);
  if (request.node !== undefined) writeNode(writer, request.node);
  for (const name of request.resourceNames) writer.choiceString(3, name);
  writer.string(4, request.typeUrl);
  writer.string(5, request.responseNonce);
  if (request.errorDetail !== undefined) {
    const start = writer.begin(6);
    writer.int32(1, request.errorDetail.code);
    writer.string(2, request.errorDetail.message);
    writer.end(start);
  }
  return writer.finish();
}

/** Reads a response. */
export function decodeDiscoveryResponse(bytes: Uint8Array): WireDiscoveryResponse {
  const reader = new WireReader(bytes, "DiscoveryResponse");
  const resources: WireAny[] = [];
  let versionInfo = "";
  let typeUrl = "";
  let nonce = "";
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) versionInfo = reader.string();
    else if (tag === (2 << 3 | LENGTH)) resources.push(readAny(reader));
    else if (tag === (4 << 3 | LENGTH)) typeUrl = reader.string();
    else if (tag === (5 << 3 | LENGTH)) nonce = reader.string();
    else reader.skip();
  }
  return { versionInfo, resources, typeUrl, nonce };
}

/** Writes a response. */
export function encodeDiscoveryResponse(response: WireDiscoveryResponse): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.string(1, response.versionInfo);
  for (const resource of response.resources) {
    const start = writer.begin(2);
    writer.string(1, resource.typeUrl);
    writer.bytes(2, resource.value);
    writer.end(start);
  }
  writer.string(4, response.typeUrl);
  writer.string(5, response.nonce);
  return writer.finish();
}

/** A second occurrence of a message continues the first, here and below: protobuf merges them. */
function readNode(reader: WireReader, before: WireNode | undefined): WireNode {
  const node = before ?? { id: "", cluster: "", metadata: undefined };
  for (const tag of reader.message("Node")) {
    if (tag === (1 << 3 | LENGTH)) node.id = reader.string();
    else if (tag === (2 << 3 | LENGTH)) node.cluster = reader.string();
    else if (tag === (3 << 3 | LENGTH)) node.metadata = readStructField(reader, node.metadata);
    else reader.skip();
  }
  return node;
}

function writeNode(writer: WireWriter, node: Readonly<WireNode>): void {
  const start = writer.begin(2);
  writer.string(1, node.id);
  writer.string(2, node.cluster);
  if (node.metadata !== undefined) writeStructField(writer, 3, node.metadata);
  writer.end(start);
}

function readStatus(reader: WireReader, before: WireStatus | undefined): WireStatus {
  const status = before ?? { code: 0, message: "" };
  for (const tag of reader.message("Status")) {
    if (tag === (1 << 3 | VARINT)) status.code = reader.int32();
    else if (tag === (2 << 3 | LENGTH)) status.message = reader.string();
    else reader.skip();
  }
  return status;
}

function readAny(reader: WireReader): WireAny {
  let typeUrl = "";
  let value = new Uint8Array();
  for (const tag of reader.message("Any")) {
    if (tag === (1 << 3 | LENGTH)) typeUrl = reader.string();
    else if (tag === (2 << 3 | LENGTH)) value = reader.bytes();
    else reader.skip();
  }
  return { typeUrl, value };
}
