import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import {
  createLocation,
  deleteLocation,
  geocodeLocation,
  isPrecise,
  location,
  updateLocation,
} from './location.js';
import type { LocationEvent } from './location.events.js';

const attributes = { name: 'Old Town', address: 'Marktplatz 1, Hamburg' };
const created: LocationEvent = {
  type: 'LocationCreated',
  data: { id: 3, accountId: 1, ...attributes },
};
const deleted: LocationEvent = { type: 'LocationDeleted', data: {} };

const pin = { latitude: 53.5503, longitude: 9.9929 };
const pinned: LocationEvent = { type: 'LocationPinned', data: pin };
const unpinned: LocationEvent = { type: 'LocationUnpinned', data: {} };
const coordinates = { latitude: 53.55, longitude: 9.99 };
const geocoded: LocationEvent = {
  type: 'LocationGeocoded',
  data: { ...coordinates, precision: 'street', provider: 'photon' },
};
const nowhere = { latitude: null, longitude: null, precision: null, geocodeStatus: 'pending' };

const LATER = '2026-03-02T10:00:00.000Z';

describe('location', () => {
  it('is found in existing histories, with the times of its events', () => {
    expect(location.name).toBe('location');
    const updated: LocationEvent = { type: 'LocationUpdated', data: { name: 'Harbour' } };
    for (const event of [updated, deleted]) {
      expect(scenario(location, created, { ...event, at: LATER }).state()).toMatchObject({
        createdAt: AT,
        updatedAt: LATER,
      });
    }
  });

  it('is created without coordinates, to be looked up', () => {
    scenario(location)
      .when(() => createLocation(3, 1, { ...attributes, pin: null }))
      .then(created);
    expect(scenario(location, created).state()).toEqual({
      id: 3,
      accountId: 1,
      ...attributes,
      latitude: null,
      longitude: null,
      precision: null,
      geocodeStatus: 'pending',
      deletedAt: null,
      createdAt: AT,
      updatedAt: AT,
    });
  });

  it('records only what changes', () => {
    scenario(location, created)
      .when((state) => updateLocation(state, { name: 'Harbour', address: attributes.address }))
      .then({ type: 'LocationUpdated', data: { name: 'Harbour' } });
    scenario(location, created)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenState({ ...attributes, name: 'Harbour' });
    scenario(location, created)
      .when((state) => updateLocation(state, attributes))
      .then();
    scenario(location, created)
      .when((state) => updateLocation(state, {}))
      .then();
  });

  it('is where its pin is, until the address changes or the pin is removed', () => {
    scenario(location)
      .when(() => createLocation(3, 1, { ...attributes, pin }))
      .then(created, pinned);
    const there = { ...pin, precision: 'manual', geocodeStatus: 'ok' };
    expect(scenario(location, created, pinned).state()).toMatchObject(there);
    const renamed: LocationEvent = { type: 'LocationUpdated', data: { name: 'Harbour' } };
    expect(scenario(location, created, pinned, renamed).state()).toMatchObject(there);
    const moved: LocationEvent = { type: 'LocationUpdated', data: { address: 'Kai 2, Hamburg' } };
    expect(scenario(location, created, pinned, moved).state()).toMatchObject(nowhere);
    expect(scenario(location, created, pinned, unpinned).state()).toMatchObject(nowhere);
  });

  it('keeps a pin that is set together with another address', () => {
    const address = 'Kai 2, Hamburg';
    scenario(location, created, pinned)
      .when((state) => updateLocation(state, { address, pin }))
      .then({ type: 'LocationUpdated', data: { address } }, pinned);
    scenario(location, created, pinned)
      .when((state) => updateLocation(state, { address, pin: null }))
      .then({ type: 'LocationUpdated', data: { address } });
  });

  it('is pinned and unpinned only where that changes something', () => {
    scenario(location, created, pinned)
      .when((state) => updateLocation(state, { pin }))
      .then();
    scenario(location, created, pinned)
      .when((state) => updateLocation(state, { pin: null }))
      .then(unpinned);
    scenario(location, created)
      .when((state) => updateLocation(state, { pin: null }))
      .then();
    scenario(location, created, geocoded)
      .when((state) => updateLocation(state, { pin: null }))
      .then();
    scenario(location, created, geocoded)
      .when((state) => updateLocation(state, { pin: coordinates }))
      .then({ type: 'LocationPinned', data: coordinates });
  });

  it('is pinned anew where either coordinate is another', () => {
    for (const moved of [
      { ...pin, latitude: 53.6 },
      { ...pin, longitude: 10 },
    ]) {
      scenario(location, created, pinned)
        .when((state) => updateLocation(state, { pin: moved }))
        .then({ type: 'LocationPinned', data: moved });
    }
  });

  it.each([
    ['manual', true],
    ['rooftop', true],
    ['street', true],
    ['postcode', false],
    ['city', false],
    [null, false],
  ] as const)('with the precision %s is good enough for phones nearby: %s', (precision, isGood) => {
    expect(isPrecise(precision)).toBe(isGood);
  });

  it('takes the result of geocoding for the same address, and never over a pin', () => {
    const result = { status: 'ok', ...coordinates, precision: 'street' } as const;
    scenario(location, created)
      .when((state) => geocodeLocation(state, attributes.address, result, 'photon'))
      .then(geocoded);
    expect(scenario(location, created, geocoded).state()).toMatchObject({
      ...coordinates,
      precision: 'street',
      geocodeStatus: 'ok',
    });
    for (const events of [[created, geocoded], [created, pinned], [created, deleted], []]) {
      scenario(location, ...events)
        .when((state) => geocodeLocation(state, attributes.address, result, 'photon'))
        .then();
    }
    scenario(location, created)
      .when((state) => geocodeLocation(state, 'Kai 2, Hamburg', result, 'photon'))
      .then();
    const better = { ...result, precision: 'rooftop' } as const;
    scenario(location, created, geocoded)
      .when((state) => geocodeLocation(state, attributes.address, better, 'photon'))
      .then({
        type: 'LocationGeocoded',
        data: { ...coordinates, precision: 'rooftop', provider: 'photon' },
      });
  });

  it('is not found or failed until the address changes, and loses nothing that was found before', () => {
    const fails = (status: 'not_found' | 'failed', ...events: LocationEvent[]) =>
      scenario(location, ...events).when((state) =>
        geocodeLocation(state, attributes.address, { status }, 'photon'),
      );
    const missing: LocationEvent = {
      type: 'LocationNotGeocoded',
      data: { status: 'not_found', provider: 'photon' },
    };
    fails('not_found', created).then(missing);
    fails('not_found', created, missing).then();
    fails('not_found', created, geocoded).then();
    fails('failed', created, missing).then({
      type: 'LocationNotGeocoded',
      data: { status: 'failed', provider: 'photon' },
    });
    expect(scenario(location, created, missing).state()).toMatchObject({
      ...nowhere,
      geocodeStatus: 'not_found',
    });
  });

  it('is gone once deleted, but keeps its name for the history', () => {
    scenario(location, created)
      .when((state) => deleteLocation(state))
      .then(deleted);
    scenario(location, created, deleted)
      .when((state) => deleteLocation(state))
      .thenThrows(NotFoundError);
    scenario(location, created, deleted)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenThrows(NotFoundError);
    expect(scenario(location, created, deleted).state()).toMatchObject({
      name: 'Old Town',
      deletedAt: AT,
    });
  });

  it('that was never created is not found', () => {
    scenario(location)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenThrows(NotFoundError);
  });
});
