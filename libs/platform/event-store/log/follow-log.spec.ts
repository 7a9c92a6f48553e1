import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { BEGINNING, type EventStore, type StoredEvent } from '../port/event-store.js';
import { followLog } from './follow-log.js';

describe('followLog', () => {
  it('writes nothing once the leadership has ended, even for events that it has received before', async () => {
    const leading = new AbortController();
    const event = { position: { commit: 1n, prepare: 0n } } as StoredEvent;
    const eventStore: Pick<EventStore, 'subscribe'> = {
      subscribe: async ({ onEvents }) => {
        const handling = onEvents([event], event.position);
        leading.abort();
        await handling;
      },
    };
    const advances: StoredEvent[][] = [];
    await followLog(
      eventStore as EventStore,
      {
        batch: 10,
        gatherMs: 500,
        readPosition: () => Promise.resolve(BEGINNING),
        advance: async (_, events) => void advances.push(events),
      },
      new Logger('follower'),
      leading.signal,
    );
    expect(advances).toEqual([]);
  });
});
