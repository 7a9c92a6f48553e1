import type { EventStoreDBClient, JSONRecordedEvent } from '@eventstore/db-client';
import streams from '@eventstore/db-client/generated/streams_pb.js';

/** How many events the server looks at in one step. Its default is 32, for which it would have to look up 32 at a time. */
const WINDOW = 10_000;

type Send = (service: {
  read: (request: streams.ReadReq, ...rest: unknown[]) => unknown;
}) => unknown;

/** What the client's methods use of each other. */
type Internals = {
  GRPCStreamCreator: (service: unknown, name: string, send: Send, cache?: unknown) => unknown;
};

/**
 * Returns the client with reads that leave out all streams but those with one of the prefixes. The protocol has a filter
 * for them, as for subscriptions, but this client has no option for it.
 */
export function withStreamFilter(
  client: EventStoreDBClient,
  prefixes: string[],
): EventStoreDBClient {
  const { GRPCStreamCreator: create } = client as unknown as Internals;
  const filtered: Internals = {
    GRPCStreamCreator: (service, name, send, cache) =>
      create(
        service,
        name,
        (grpc) =>
          send({
            read: (request, ...rest) => {
              request.getOptions()?.setFilter(createFilter(prefixes));
              return grpc.read(request, ...rest);
            },
          }),
        cache,
      ),
  };
  return Object.assign(Object.create(client) as EventStoreDBClient, filtered);
}

/** Collects what a read yields, converted, up to its end. */
export async function collect<T>(
  reading: AsyncIterable<{ event?: unknown }>,
  convert: (event: JSONRecordedEvent) => T | undefined,
): Promise<T[]> {
  const results: T[] = [];
  for await (const resolved of reading) {
    const recorded = resolved.event as JSONRecordedEvent | undefined;
    const result = recorded && convert(recorded);
    if (result !== undefined) results.push(result);
  }
  return results;
}

function createFilter(prefixes: string[]): streams.ReadReq.Options.FilterOptions {
  const { FilterOptions } = streams.ReadReq.Options;
  const expression = new FilterOptions.Expression();
  expression.setPrefixList(prefixes);
  const filter = new FilterOptions();
  filter.setStreamIdentifier(expression);
  filter.setMax(WINDOW);
  filter.setCheckpointintervalmultiplier(1);
  return filter;
}
