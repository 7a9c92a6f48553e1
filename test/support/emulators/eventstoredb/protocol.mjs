import { createRequire } from 'node:module';

/**
 * The client's own copies of its service definitions and of the gRPC and protobuf packages that these were generated
 * for. Messages from a second copy would not pass its type checks.
 */
const require = createRequire(
  createRequire(import.meta.url).resolve('@eventstore/db-client/package.json'),
);

export const grpc = require('@grpc/grpc-js');
const { Any } = require('google-protobuf/google/protobuf/any_pb.js');
export const { Empty: GoogleEmpty } = require('google-protobuf/google/protobuf/empty_pb.js');
const streams = require('@eventstore/db-client/generated/streams_pb.js');
const shared = require('@eventstore/db-client/generated/shared_pb.js');
const { Status } = require('@eventstore/db-client/generated/status_pb.js');
const { Code } = require('@eventstore/db-client/generated/code_pb.js');
const features = require('@eventstore/db-client/generated/serverfeatures_pb.js');
const gossip = require('@eventstore/db-client/generated/gossip_pb.js');

export const { StreamsService } = require('@eventstore/db-client/generated/streams_grpc_pb.js');
export const {
  ServerFeaturesService,
} = require('@eventstore/db-client/generated/serverfeatures_grpc_pb.js');
export const { GossipService } = require('@eventstore/db-client/generated/gossip_grpc_pb.js');
export const { ReadReq, ReadResp, BatchAppendResp } = streams;
export const { ReadDirection } = ReadReq.Options;

const PACKAGE = 'event_store.client';
const { DeleteResp, TombstoneResp } = streams;

/**
 * @typedef {import('./event-log.mjs').Expected} Expected
 * @typedef {import('./event-log.mjs').Proposed} Proposed
 * @typedef {import('./event-log.mjs').Recorded} Recorded
 * @typedef {import('./event-log.mjs').Position} Position
 * @typedef {{ code: number, details: string, metadata?: object }} Failure
 */

/**
 * @param {number} code
 * @param {string} details
 * @param {Record<string, string>} [trailers]
 * @returns {Failure}
 */
function failure(code, details, trailers = {}) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return { code, details, metadata };
}

/** Failures of a whole call, with the trailers by which the client recognises them. */
export const failures = {
  unavailable: () => failure(grpc.status.UNAVAILABLE, 'Connection dropped'),
  notReady: () => failure(grpc.status.UNAVAILABLE, 'Server Is Not Ready'),
  cancelled: () => failure(grpc.status.CANCELLED, 'Operation cancelled'),
  timeout: (message) => failure(grpc.status.ABORTED, `Operation timed out: ${message}`),
  unauthenticated: () => failure(grpc.status.UNAUTHENTICATED, 'Unauthenticated'),
  accessDenied: () =>
    failure(grpc.status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' }),
  streamDeleted: (name) =>
    failure(grpc.status.FAILED_PRECONDITION, `Event stream '${name}' is deleted.`, {
      exception: 'stream-deleted',
      'stream-name': name,
    }),
  wrongExpectedVersion: (name, current) =>
    failure(grpc.status.FAILED_PRECONDITION, `Append failed due to WrongExpectedVersion.`, {
      exception: 'wrong-expected-version',
      'stream-name': name,
      'actual-version': String(current),
    }),
  invalidPosition: () =>
    failure(grpc.status.INVALID_ARGUMENT, 'Trying to read from an invalid position.'),
  invalidArgument: (message) => failure(grpc.status.INVALID_ARGUMENT, message),
  unknown: (message) => failure(grpc.status.UNKNOWN, message),
  notLeader: ({ host, port }) =>
    failure(grpc.status.NOT_FOUND, 'Leader info available', {
      exception: 'not-leader',
      'leader-endpoint-host': host,
      'leader-endpoint-port': String(port),
    }),
};

/**
 * @param {number} code
 * @param {string} name
 * @param {object} message
 */
function status(code, name, message) {
  const details = new Any();
  details.pack(message.serializeBinary(), `${PACKAGE}.${name}`);
  return new Status().setCode(code).setMessage(name).setDetails(details);
}

/** Failures of one append in a batch, as a status with details. */
export const statuses = {
  wrongExpectedVersion: (current, expected) =>
    status(Code.ALREADY_EXISTS, 'WrongExpectedVersion', wrongVersionDetails(current, expected)),
  streamDeleted: (name) =>
    status(
      Code.NOT_FOUND,
      'StreamDeleted',
      new shared.StreamDeleted().setStreamIdentifier(streamIdentifier(name)),
    ),
  accessDenied: () => status(Code.PERMISSION_DENIED, 'AccessDenied', new shared.AccessDenied()),
  timeout: () => status(Code.DEADLINE_EXCEEDED, 'Timeout', new shared.Timeout()),
  unknown: () => status(Code.UNKNOWN, 'Unknown', new shared.Unknown()),
  badRequest: (message) =>
    status(Code.INVALID_ARGUMENT, 'BadRequest', new shared.BadRequest().setMessage(message)),
  maximumAppendSizeExceeded: (limit) =>
    status(
      Code.INVALID_ARGUMENT,
      'MaximumAppendSizeExceeded',
      new shared.MaximumAppendSizeExceeded().setMaxappendsize(limit),
    ),
  /** The server gives no type for this, so the client cannot tell what it is. */
  notReady: () => {
    const details = new Any();
    details.pack(new GoogleEmpty().serializeBinary(), 'google.protobuf.Empty');
    return new Status().setMessage('Server Is Not Ready').setDetails(details);
  },
};

function wrongVersionDetails(current, expected) {
  const details = new shared.WrongExpectedVersion();
  if (current < 0n) details.setCurrentNoStream(new GoogleEmpty());
  else details.setCurrentStreamRevision(String(current));
  if (expected === 'any') details.setExpectedAny(new GoogleEmpty());
  else if (expected === 'stream_exists') details.setExpectedStreamExists(new GoogleEmpty());
  else if (expected === 'no_stream') details.setExpectedNoStream(new GoogleEmpty());
  else details.setExpectedStreamPosition(String(expected));
  return details;
}

/** @param {{ revision: bigint, position: bigint | null }} outcome */
export function batchSuccess({ revision, position }) {
  const success = new BatchAppendResp.Success();
  if (revision < 0n) success.setNoStream(new GoogleEmpty());
  else success.setCurrentRevision(String(revision));
  if (position === null) success.setNoPosition(new GoogleEmpty());
  else {
    const at = new shared.AllStreamPosition();
    at.setCommitPosition(String(position));
    at.setPreparePosition(String(position));
    success.setPosition(at);
  }
  return success;
}

/** @param {{ position: bigint, isFinal: boolean }} deletion */
export function deleteResponse({ position, isFinal }) {
  const response = isFinal ? new TombstoneResp() : new DeleteResp();
  const at = new response.constructor.Position();
  at.setCommitPosition(String(position));
  at.setPreparePosition(String(position));
  return response.setPosition(at);
}

/** Names are bytes in the protocol and text in the server. */
export const streamName = (identifier) =>
  Buffer.from(identifier.getStreamName_asU8()).toString('utf8');

export function streamIdentifier(name) {
  return new shared.StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(name, 'utf8')));
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @returns {string | null} null when there is none */
export function uuid(message) {
  if (message === undefined) return null;
  if (message.hasStructured()) {
    const half = (bits) => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, '0');
    const { mostSignificantBits, leastSignificantBits } = message.getStructured().toObject();
    const hex = half(mostSignificantBits) + half(leastSignificantBits);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }
  const text = message.getString().toLowerCase();
  return UUID.test(text) ? text : null;
}

/** Parses the expected revision of an append. @returns {Expected | null} */
export function parseExpected(options) {
  if (options.hasAny()) return 'any';
  if (options.hasStreamExists()) return 'stream_exists';
  if (options.hasNoStream()) return 'no_stream';
  if (options.hasRevision?.()) return BigInt(options.getRevision());
  if (options.hasStreamPosition?.()) return BigInt(options.getStreamPosition());
  return null;
}

/** @returns {{ event: Proposed } | { missing: string }} */
export function parseProposedEvent(message) {
  const metadata = message.getMetadataMap();
  const id = uuid(message.getId());
  if (id === null) return { missing: 'id' };
  for (const name of ['type', 'content-type']) if (!metadata.has(name)) return { missing: name };
  return {
    event: {
      id,
      type: metadata.get('type'),
      isJson: metadata.get('content-type') === 'application/json',
      data: Buffer.from(message.getData_asU8()),
      metadata: Buffer.from(message.getCustomMetadata_asU8()),
    },
  };
}

/** @param {Proposed} event */
export const sizeOnDisk = (event) =>
  event.data.length + event.metadata.length + event.type.length * 2;

/**
 * @param {Recorded} event
 * @param {{ structuredIds: boolean, fromAll: boolean }} how
 */
export function eventResponse(event, { structuredIds, fromAll }) {
  const recorded = new ReadResp.ReadEvent.RecordedEvent();
  recorded.setId(structuredIds ? structuredUuid(event.id) : new shared.UUID().setString(event.id));
  recorded.setStreamIdentifier(streamIdentifier(event.stream));
  recorded.setStreamRevision(String(event.revision));
  recorded.setCommitPosition(String(event.position));
  recorded.setPreparePosition(String(event.position));
  recorded.getMetadataMap().set('type', event.type);
  recorded.getMetadataMap().set('created', String(event.created));
  recorded
    .getMetadataMap()
    .set('content-type', event.isJson ? 'application/json' : 'application/octet-stream');
  recorded.setData(Uint8Array.from(event.data));
  recorded.setCustomMetadata(Uint8Array.from(event.metadata));
  const read = new ReadResp.ReadEvent().setEvent(recorded);
  if (fromAll) read.setCommitPosition(String(event.position));
  else read.setNoPosition(new shared.Empty());
  return new ReadResp().setEvent(read);
}

function structuredUuid(id) {
  const hex = id.replaceAll('-', '');
  const half = (text) => String(BigInt.asIntN(64, BigInt(`0x${text}`)));
  const structured = new shared.UUID.Structured();
  structured.setMostSignificantBits(half(hex.slice(0, 16)));
  structured.setLeastSignificantBits(half(hex.slice(16)));
  return new shared.UUID().setStructured(structured);
}

export const confirmation = (id) =>
  new ReadResp().setConfirmation(new ReadResp.SubscriptionConfirmation().setSubscriptionId(id));

export const createCaughtUp = () => new ReadResp().setCaughtUp(new ReadResp.CaughtUp());

/** @param {Position} position */
export function checkpoint({ commit, prepare }) {
  const message = new ReadResp.Checkpoint();
  message.setCommitPosition(String(commit));
  message.setPreparePosition(String(prepare));
  return new ReadResp().setCheckpoint(message);
}

export const streamNotFound = (name) =>
  new ReadResp().setStreamNotFound(
    new ReadResp.StreamNotFound().setStreamIdentifier(streamIdentifier(name)),
  );

/** @param {string} version of which clients learn three parts */
export function supportedMethods(version) {
  const methods = [
    ['read', ['position', 'events']],
    ['append', []],
    ['batchappend', ['deadline_duration']],
  ];
  const supported = new features.SupportedMethods().setEventStoreServerVersion(
    version.split('.').slice(0, 3).join('.'),
  );
  for (const [name, list] of methods) {
    const method = new features.SupportedMethod();
    method.setServiceName(`${PACKAGE}.streams.streams`);
    method.setMethodName(name);
    method.setFeaturesList(list);
    supported.addMethods(method);
  }
  return supported;
}

/**
 * Creates the cluster info for clients that discover the leader.
 * @param {import('./members.mjs').Members} members
 */
export function createClusterInfo(members) {
  const { LEADER, FOLLOWER, UNKNOWN, SHUTDOWN } = gossip.MemberInfo.VNodeState;
  const states = { Leader: LEADER, Follower: FOLLOWER, Unknown: UNKNOWN, Shutdown: SHUTDOWN };
  return new gossip.ClusterInfo().setMembersList(
    members.list.map((member) =>
      new gossip.MemberInfo()
        .setInstanceId(structuredUuid(member.id))
        .setState(states[members.getState(member)])
        .setIsAlive(member.isAlive)
        .setHttpEndPoint(new gossip.EndPoint().setAddress(member.host).setPort(member.port)),
    ),
  );
}
