import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
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
const locationCreated: LocationEvent = {
  type: 'LocationCreated',
  data: { id: 3, accountId: 1, ...attributes },
};
const locationDeleted: LocationEvent = { type: 'LocationDeleted', data: {} };

const pin = { latitude: 53.5503, longitude: 9.9929 };
const locationPinned: LocationEvent = { type: 'LocationPinned', data: pin };
const locationUnpinned: LocationEvent = { type: 'LocationUnpinned', data: {} };
const coordinates = { latitude: 53.55, longitude: 9.99 };
const locationGeocoded: LocationEvent = {
  type: 'LocationGeocoded',
  data: { ...coordinates, precision: 'street', provider: 'photon' },
};
const nowhere = { latitude: null, longitude: null, precision: null, geocodeStatus: 'pending' };

const LATER = '2026-03-02T10:00:00.000Z';

describe('a location', () => {
  it('has the name of existing streams, and the times of its events', () => {
    expect(location.name).toBe('location');
    const locationUpdated: LocationEvent = { type: 'LocationUpdated', data: { name: 'Harbour' } };
    for (const event of [locationUpdated, locationDeleted]) {
      expect(scenario(location, locationCreated, { ...event, at: LATER }).state()).toMatchObject({
        createdAt: AT,
        updatedAt: LATER,
      });
    }
  });

  it('is created without coordinates, with geocoding pending', () => {
    scenario(location)
      .when(() => createLocation(3, 1, { ...attributes, pin: null }))
      .then(locationCreated);
    expect(scenario(location, locationCreated).state()).toEqual({
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
    scenario(location, locationCreated)
      .when((state) => updateLocation(state, { name: 'Harbour', address: attributes.address }))
      .then({ type: 'LocationUpdated', data: { name: 'Harbour' } });
    scenario(location, locationCreated)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenState({ ...attributes, name: 'Harbour' });
    scenario(location, locationCreated)
      .when((state) => updateLocation(state, attributes))
      .then();
    scenario(location, locationCreated)
      .when((state) => updateLocation(state, {}))
      .then();
  });

  it('has the coordinates of its pin until the address changes or the pin is removed', () => {
    scenario(location)
      .when(() => createLocation(3, 1, { ...attributes, pin }))
      .then(locationCreated, locationPinned);
    const atPin = { ...pin, precision: 'manual', geocodeStatus: 'ok' };
    expect(scenario(location, locationCreated, locationPinned).state()).toMatchObject(atPin);
    const nameUpdated: LocationEvent = { type: 'LocationUpdated', data: { name: 'Harbour' } };
    expect(scenario(location, locationCreated, locationPinned, nameUpdated).state()).toMatchObject(
      atPin,
    );
    const addressUpdated: LocationEvent = {
      type: 'LocationUpdated',
      data: { address: 'Kai 2, Hamburg' },
    };
    expect(
      scenario(location, locationCreated, locationPinned, addressUpdated).state(),
    ).toMatchObject(nowhere);
    expect(
      scenario(location, locationCreated, locationPinned, locationUnpinned).state(),
    ).toMatchObject(nowhere);
  });

  it('keeps a pin that is set together with another address', () => {
    const address = 'Kai 2, Hamburg';
    scenario(location, locationCreated, locationPinned)
      .when((state) => updateLocation(state, { address, pin }))
      .then({ type: 'LocationUpdated', data: { address } }, locationPinned);
    scenario(location, locationCreated, locationPinned)
      .when((state) => updateLocation(state, { address, pin: null }))
      .then({ type: 'LocationUpdated', data: { address } });
  });

  it('records a pin or its removal only when that changes something', () => {
    scenario(location, locationCreated, locationPinned)
      .when((state) => updateLocation(state, { pin }))
      .then();
    scenario(location, locationCreated, locationPinned)
      .when((state) => updateLocation(state, { pin: null }))
      .then(locationUnpinned);
    scenario(location, locationCreated)
      .when((state) => updateLocation(state, { pin: null }))
      .then();
    scenario(location, locationCreated, locationGeocoded)
      .when((state) => updateLocation(state, { pin: null }))
      .then();
    scenario(location, locationCreated, locationGeocoded)
      .when((state) => updateLocation(state, { pin: coordinates }))
      .then({ type: 'LocationPinned', data: coordinates });
  });

  it('records a pin when either coordinate differs', () => {
    for (const otherPin of [
      { ...pin, latitude: 53.6 },
      { ...pin, longitude: 10 },
    ]) {
      scenario(location, locationCreated, locationPinned)
        .when((state) => updateLocation(state, { pin: otherPin }))
        .then({ type: 'LocationPinned', data: otherPin });
    }
  });

  it.each([
    ['manual', true],
    ['rooftop', true],
    ['street', true],
    ['postcode', false],
    ['city', false],
    [null, false],
  ] as const)(
    'with the precision %s is precise enough for phones nearby: %s',
    (precision, isGood) => {
      expect(isPrecise(precision)).toBe(isGood);
    },
  );

  it('takes a geocoding result for its current address only, and never over a pin', () => {
    const result = { status: 'ok', ...coordinates, precision: 'street' } as const;
    scenario(location, locationCreated)
      .when((state) => geocodeLocation(state, attributes.address, result, 'photon'))
      .then(locationGeocoded);
    expect(scenario(location, locationCreated, locationGeocoded).state()).toMatchObject({
      ...coordinates,
      precision: 'street',
      geocodeStatus: 'ok',
    });
    for (const events of [
      [locationCreated, locationGeocoded],
      [locationCreated, locationPinned],
      [locationCreated, locationDeleted],
      [],
    ]) {
      scenario(location, ...events)
        .when((state) => geocodeLocation(state, attributes.address, result, 'photon'))
        .then();
    }
    scenario(location, locationCreated)
      .when((state) => geocodeLocation(state, 'Kai 2, Hamburg', result, 'photon'))
      .then();
    const better = { ...result, precision: 'rooftop' } as const;
    scenario(location, locationCreated, locationGeocoded)
      .when((state) => geocodeLocation(state, attributes.address, better, 'photon'))
      .then({
        type: 'LocationGeocoded',
        data: { ...coordinates, precision: 'rooftop', provider: 'photon' },
      });
  });

  it('records once that geocoding failed, and keeps coordinates that it has', () => {
    const whenGeocodingFails = (status: 'not_found' | 'failed', ...events: LocationEvent[]) =>
      scenario(location, ...events).when((state) =>
        geocodeLocation(state, attributes.address, { status }, 'photon'),
      );
    const locationNotGeocoded: LocationEvent = {
      type: 'LocationNotGeocoded',
      data: { status: 'not_found', provider: 'photon' },
    };
    whenGeocodingFails('not_found', locationCreated).then(locationNotGeocoded);
    whenGeocodingFails('not_found', locationCreated, locationNotGeocoded).then();
    whenGeocodingFails('not_found', locationCreated, locationGeocoded).then();
    whenGeocodingFails('failed', locationCreated, locationNotGeocoded).then({
      type: 'LocationNotGeocoded',
      data: { status: 'failed', provider: 'photon' },
    });
    expect(scenario(location, locationCreated, locationNotGeocoded).state()).toMatchObject({
      ...nowhere,
      geocodeStatus: 'not_found',
    });
  });

  it('is not found once deleted, but keeps its name in the state', () => {
    scenario(location, locationCreated)
      .when((state) => deleteLocation(state))
      .then(locationDeleted);
    scenario(location, locationCreated, locationDeleted)
      .when((state) => deleteLocation(state))
      .thenThrows(NotFoundError);
    scenario(location, locationCreated, locationDeleted)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenThrows(NotFoundError);
    expect(scenario(location, locationCreated, locationDeleted).state()).toMatchObject({
      name: 'Old Town',
      deletedAt: AT,
    });
  });

  it('is not found when it was never created', () => {
    scenario(location)
      .when((state) => updateLocation(state, { name: 'Harbour' }))
      .thenThrows(NotFoundError);
  });
});
