import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import { ExportPlaces } from './export-places.service.js';

class Raw extends EventEmitter {
  readonly closed = false;
  readonly writableLength = 0;
}

describe('the places of exports', () => {
  const take = (places: ExportPlaces, accountId: number) => {
    const raw = new Raw();
    places.take(accountId, { raw } as unknown as FastifyReply);
    return raw;
  };

  it('are two for a store, and free again once a response is closed', () => {
    const places = new ExportPlaces();
    const first = take(places, 1);
    take(places, 1);
    expect(() => take(places, 1)).toThrow('Too many exports');
    take(places, 2);
    first.emit('close');
    take(places, 1);
  });

  it('are 32 in all', () => {
    const places = new ExportPlaces();
    for (let account = 1; account <= 32; account++) take(places, account);
    expect(() => take(places, 33)).toThrow('Too many exports');
  });
});
