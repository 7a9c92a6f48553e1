import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, given } from '../../../../test/support/given.js';
import {
  createLocation,
  deleteLocation,
  location,
  updateLocation,
  type Location,
} from './location.js';
import type { LocationEvent } from './location.events.js';

const attributes = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };
const created: LocationEvent = {
  type: 'LocationCreated',
  data: { id: 3, accountId: 1, ...attributes },
};
const deleted: LocationEvent = { type: 'LocationDeleted', data: {} };

const LATER = '2026-03-02T10:00:00.000Z';

describe('location', () => {
  it('is found in existing histories, with the times of its events', () => {
    expect(location.name).toBe('location');
    const updated: LocationEvent = { type: 'LocationUpdated', data: { name: 'Harbour' } };
    for (const event of [updated, deleted]) {
      expect(given(location, created, { ...event, at: LATER }).state()).toMatchObject({
        createdAt: AT,
        updatedAt: LATER,
      });
    }
  });

  it('is created without coordinates, to be looked up', () => {
    given(location)
      .when(() => createLocation(3, 1, attributes))
      .then(created);
    expect(given(location, created).state()).toEqual({
      id: 3,
      accountId: 1,
      ...attributes,
      latitude: null,
      longitude: null,
      geocodeStatus: 'pending',
      deletedAt: null,
      createdAt: AT,
      updatedAt: AT,
    });
  });

  it('records only what changes', () => {
    given(location, created)
      .when((state) => updateLocation(state, { name: 'Harbour', address: attributes.address }))
      .then({ type: 'LocationUpdated', data: { name: 'Harbour' } });
    given(location, created)
      .when((state) => updateLocation(state, attributes))
      .then();
    given(location, created)
      .when((state) => updateLocation(state, {}))
      .then();
  });

  it('loses its coordinates with its address, and only then', () => {
    const known: Location = {
      ...given(location, created).state(),
      latitude: 53.55,
      longitude: 9.99,
      geocodeStatus: 'ok',
    };
    const after = (data: Partial<typeof attributes>) =>
      location.evolve(known, {
        type: 'LocationUpdated',
        data,
        id: 'event',
        meta: {
          accountId: 1,
          actor: { type: 'token', id: 1 },
          channel: 'api',
          requestId: 'spec',
          occurredAt: AT,
          recordedAt: AT,
        },
      });
    expect(after({ name: 'Harbour' })).toEqual({ ...known, name: 'Harbour' });
    expect(after({ address: 'Kai 2, Hamburg' })).toEqual({
      ...known,
      address: 'Kai 2, Hamburg',
      latitude: null,
      longitude: null,
      geocodeStatus: 'pending',
    });
  });

  it('is gone once deleted, but keeps its name for the history', () => {
    given(location, created)
      .when((state) => deleteLocation(state))
      .then(deleted);
    given(location, created, deleted)
      .when((state) => deleteLocation(state))
      .thenThrows(NotFoundError);
    given(location, created, deleted)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenThrows(NotFoundError);
    expect(given(location, created, deleted).state()).toMatchObject({
      name: 'Old Town',
      deletedAt: AT,
    });
  });

  it('that was never created is not found', () => {
    given(location)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenThrows(NotFoundError);
  });
});
