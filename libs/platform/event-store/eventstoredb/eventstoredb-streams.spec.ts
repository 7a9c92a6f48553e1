import type { JSONRecordedEvent } from '@eventstore/db-client';
import { describe, expect, it } from '@jest/globals';
import { OwnStreams } from './eventstoredb-streams.js';
import type { ForeignEvent, StreamSettings } from './foreign-events.js';

const METADATA = {
  accountId: 7,
  actor: { type: 'system', id: 3 },
  channel: 'api',
  requestId: 'r-1',
  commandId: 'c-1',
  occurredAt: '2026-11-27T10:00:00.000Z',
  recordedAt: '2026-11-27T10:00:01.000Z',
  schemaVersion: 1,
  hash: 'a'.repeat(64),
};
const CREATED = new Date('2026-11-27T10:00:02Z');
const OURS = {
  id: 'e-1',
  streamId: 'ours_thing-12',
  revision: 4n,
  type: 'ThingChanged',
  data: { name: 'Tea' },
  metadata: METADATA,
  isJson: true,
  created: CREATED,
  position: { commit: 9n, prepare: 9n },
};

function read(changes: object) {
  const foreign: ForeignEvent[] = [];
  const settings: StreamSettings[] = [];
  const streams = new OwnStreams('ours_', ['thing-', 'small_thing-'], {
    addEvent: (event) => foreign.push(event),
    addSettings: (event) => settings.push(event),
  });
  const recorded = { ...OURS, ...changes } as unknown as JSONRecordedEvent;
  return { event: streams.toStoredEvent(recorded), foreign, settings };
}

describe('an event on a shared server', () => {
  it('is ours if its stream is one of our kinds with a number and our metadata are whole', () => {
    const { schemaVersion: version, hash, ...meta } = METADATA;
    expect(read({})).toEqual({
      foreign: [],
      settings: [],
      event: {
        id: 'e-1',
        stream: 'thing-12',
        revision: 4,
        type: 'ThingChanged',
        version,
        data: { name: 'Tea' },
        meta,
        hash,
        position: { commit: 9n, prepare: 9n },
      },
    });
  });

  it('is ours without the metadata that older events lack, and of a type that a newer version writes', () => {
    const { commandId: _, ...older } = METADATA;
    expect(read({ metadata: older }).event).toMatchObject({ meta: { requestId: 'r-1' } });
    expect(read({ type: 'ThingSold' }).event).toMatchObject({ type: 'ThingSold' });
  });

  it.each([
    ['no metadata', { metadata: undefined }],
    ['metadata that are not JSON', { metadata: new Uint8Array([1]) }],
    ['metadata of another application', { metadata: { $correlationId: 'x', by: 5 } }],
    ['metadata that are a list', { metadata: [METADATA] }],
    ...Object.keys(METADATA)
      .filter((name) => name !== 'commandId')
      .map((name) => [`no ${name}`, { metadata: { ...METADATA, [name]: undefined } }] as const),
    ['an account that is text', { metadata: { ...METADATA, accountId: '7' } }],
    ['an actor without an id', { metadata: { ...METADATA, actor: { type: 'system' } } }],
    ['a time that is none', { metadata: { ...METADATA, recordedAt: '2026-13-41T10:00:00Z' } }],
    ['a time in another notation', { metadata: { ...METADATA, recordedAt: 'yesterday' } }],
    ['a hash that is none', { metadata: { ...METADATA, hash: '' } }],
    ['a schema version that is none', { metadata: { ...METADATA, schemaVersion: 0 } }],
    ['bytes as data', { isJson: false, data: new Uint8Array([1, 2]) }],
    ['data that are not JSON', { data: '{"name":' }],
    ['data that are a list', { data: [1] }],
    ['data that are null', { data: null }],
    ['a link', { type: '$>', data: '3@thing-5' }],
    ['a tombstone', { type: '$streamDeleted', revision: 9_223_372_036_854_775_807n }],
    ['a system type', { type: '$metadata' }],
    ['a revision beyond numbers', { revision: 2n ** 60n }],
    ['a number with zeros', { streamId: 'ours_thing-007' }],
    ['the number zero', { streamId: 'ours_thing-0' }],
    ['a number beyond numbers', { streamId: 'ours_thing-9999999999999999999' }],
    ['a number with a point', { streamId: 'ours_thing-1.5' }],
    ['a number in another notation', { streamId: 'ours_thing-1e3' }],
    ['no number', { streamId: 'ours_thing-' }],
    ['a name', { streamId: 'ours_thing-anna' }],
    ['a longer name', { streamId: 'ours_thing-12-5' }],
  ])('with %s is somebody else’s', (_what, changes) => {
    const { event, foreign } = read(changes);
    expect(event).toBeUndefined();
    const { streamId: stream, revision, type } = { ...OURS, ...changes };
    expect(foreign).toEqual([{ stream, revision, type, createdAt: CREATED }]);
  });

  it('is a setting of a stream of ours in the stream of its settings', () => {
    const { event, settings } = read({ streamId: '$$ours_thing-12', data: { $maxCount: 3 } });
    expect([event, settings]).toEqual([
      undefined,
      [{ stream: 'ours_thing-12', revision: 4n, settings: { $maxCount: 3 } }],
    ]);
  });

  it.each(['thing-12', 'ours_things-1', 'ours_nobody-5', '$$theirs_thing-12', 'theirs_thing-12'])(
    'in the stream %s is of no interest',
    (streamId) => {
      expect(read({ streamId })).toEqual({ event: undefined, foreign: [], settings: [] });
    },
  );
});
