import { convertToCommandError, type EventStoreDBClient } from '@eventstore/db-client';
import unpacking from '@eventstore/db-client/dist/streams/appendToStream/unpackError.js';
import service from '@eventstore/db-client/generated/streams_grpc_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { CallOptions, ClientDuplexStream, Metadata } from '@grpc/grpc-js';
import { finished } from 'node:stream';
import type { Position } from '../port/event-store.js';
import { NoResponseError } from './eventstoredb-errors.js';

export type Append = {
  streamName: string;
  /** The revision of the stream's last event; undefined when it must not exist yet. */
  expectedRevision: number | undefined;
  events: { id: string; type: string; data: object; metadata?: object }[];
};

type Call = ClientDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>;
type StreamsClient = InstanceType<typeof service.StreamsClient>;

/** What the client's methods use of each other: it chooses the node, and adds the credentials. */
type Internals = {
  GRPCStreamCreator: (
    service: unknown,
    name: string,
    open: (grpc: StreamsClient) => Call,
  ) => () => Promise<Call>;
  callArguments: (options: object, callOptions: CallOptions) => [Metadata, CallOptions];
};

type Pending = {
  resolve: (position: Position | undefined) => void;
  reject: (error: unknown) => void;
};

const encoder = new TextEncoder();
const empty = new shared.Empty();

/**
 * Sends appends over one batch-append call, and matches its responses by their correlation ids. The client's own
 * `appendToStream` shares its pending appends between all clients of a process: the end of one clears them, and the
 * next response without an entry ends the process.
 */
export class BatchAppends {
  private call: Promise<Call> | undefined;
  private readonly pending = new Map<string, Pending>();
  private lastId = 0;
  private isClosed = false;

  constructor(
    private readonly client: EventStoreDBClient,
    /** Called for a response that no append waits for, such as a late or repeated one. */
    private readonly onOrphan: () => void,
  ) {}

  /**
   * Sends an append. Appends are sent in the order of the calls. There is no time-out: closing ends the wait.
   * @returns the position of its last event
   */
  async append(append: Append): Promise<Position | undefined> {
    const call = await (this.call ??= this.open());
    return new Promise((resolve, reject) => {
      if (this.isClosed) return reject(createClosedError());
      const id = String(++this.lastId);
      this.pending.set(id, { resolve, reject });
      call.write(createRequest(id, append));
    });
  }

  /** Ends the call, and every wait at once: on a silent connection the call itself ends late. */
  close(): void {
    this.isClosed = true;
    this.rejectAll(createClosedError());
    this.call?.then(
      (call) => call.cancel(),
      () => undefined,
    );
  }

  private async open(): Promise<Call> {
    const { GRPCStreamCreator, callArguments } = this.client as unknown as Internals;
    const end = (error?: Error | null) => {
      this.call = undefined;
      this.rejectAll(
        error ? convertToCommandError(error) : new NoResponseError('the server ended the call'),
      );
    };
    const open = (grpc: StreamsClient) => {
      const call = grpc.batchAppend(...callArguments({}, { deadline: Infinity }));
      call.on('data', (response: streams.BatchAppendResp) => this.receive(response));
      finished(call, { writable: false }, end);
      return call;
    };
    try {
      return await GRPCStreamCreator(service.StreamsClient, 'batchAppend', open)();
    } catch (error) {
      this.call = undefined;
      throw error;
    }
  }

  private receive(response: streams.BatchAppendResp): void {
    const id = response.getCorrelationId()?.getStructured()?.getLeastSignificantBits() ?? '';
    const append = this.pending.get(id);
    if (!append) return this.onOrphan();
    this.pending.delete(id);
    try {
      append.resolve(parseResponse(response));
    } catch (error) {
      append.reject(error);
    }
  }

  private rejectAll(error: Error): void {
    const appends = [...this.pending.values()];
    this.pending.clear();
    for (const { reject } of appends) reject(error);
  }
}

function createClosedError(): NoResponseError {
  return new NoResponseError('the connection was given up');
}

/** Creates the request. It has no deadline, which would be a time on the server's clock. */
function createRequest(
  id: string,
  { streamName, expectedRevision, events }: Append,
): streams.BatchAppendReq {
  const options = new streams.BatchAppendReq.Options();
  const name = new shared.StreamIdentifier();
  name.setStreamName(encoder.encode(streamName));
  options.setStreamIdentifier(name);
  if (expectedRevision === undefined) options.setNoStream(empty);
  else options.setStreamPosition(String(expectedRevision));
  const bits = new shared.UUID.Structured();
  bits.setLeastSignificantBits(id);
  const correlationId = new shared.UUID();
  correlationId.setStructured(bits);
  const request = new streams.BatchAppendReq();
  request.setCorrelationId(correlationId);
  request.setOptions(options);
  request.setProposedMessagesList(events.map(createMessage));
  request.setIsFinal(true);
  return request;
}

function createMessage({
  id,
  type,
  data,
  metadata,
}: Append['events'][number]): streams.BatchAppendReq.ProposedMessage {
  const eventId = new shared.UUID();
  eventId.setString(id);
  const message = new streams.BatchAppendReq.ProposedMessage();
  message.setId(eventId);
  message.getMetadataMap().set('type', type).set('content-type', 'application/json');
  message.setData(encoder.encode(JSON.stringify(data)));
  if (metadata) message.setCustomMetadata(encoder.encode(JSON.stringify(metadata)));
  return message;
}

/** @throws the client's error for a rejected append */
function parseResponse(response: streams.BatchAppendResp): Position | undefined {
  const error = response.getError();
  if (error) {
    const name = Buffer.from(response.getStreamIdentifier()?.getStreamName_asU8() ?? []);
    throw unpacking.unpackToCommandError(error, name.toString());
  }
  const position = response.getSuccess()?.getPosition();
  return (
    position && {
      commit: BigInt(position.getCommitPosition()),
      prepare: BigInt(position.getPreparePosition()),
    }
  );
}
