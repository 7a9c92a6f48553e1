import { describe, expect, it } from '@jest/globals';
import { isRetired, renderRetirementHeaders, toVersioningJson } from './versioning.js';

const DEPRECATION = '2027-02-01T00:00:00.000Z';
const SUNSET = '2028-02-01T00:00:00.000Z';

const versions = (deprecated?: string, sunset?: string) => ({
  publicUrl: 'https://orders.example',
  v1: {
    deprecatedAt: deprecated === undefined ? null : new Date(deprecated),
    sunsetAt: sunset === undefined ? null : new Date(sunset),
  },
});

describe('a version', () => {
  it.each([
    [
      'is supported when no retirement was announced',
      versions(),
      '2099-01-01T00:00:00.000Z',
      { retired: false, deprecated: [] },
    ],
    [
      'is not deprecated a moment before its deprecation date',
      versions(DEPRECATION, SUNSET),
      '2027-01-31T23:59:59.999Z',
      { retired: false, deprecated: [] },
    ],
    [
      'is deprecated from its deprecation date on',
      versions(DEPRECATION, SUNSET),
      DEPRECATION,
      { retired: false, deprecated: ['v1'] },
    ],
    [
      'stays deprecated when it has no sunset date',
      versions(DEPRECATION),
      '2099-01-01T00:00:00.000Z',
      { retired: false, deprecated: ['v1'] },
    ],
    [
      'is not retired a moment before its sunset date',
      versions(DEPRECATION, SUNSET),
      '2028-01-31T23:59:59.999Z',
      { retired: false, deprecated: ['v1'] },
    ],
    [
      'is retired from its sunset date on',
      versions(DEPRECATION, SUNSET),
      SUNSET,
      { retired: true, deprecated: ['v1'] },
    ],
  ])('%s', (_title, versions, now, { retired, deprecated }) => {
    expect(isRetired(versions, new Date(now))).toBe(retired);
    expect(toVersioningJson(versions, new Date(now))).toMatchObject({
      current: 'v1',
      supported: retired ? [] : ['v1'],
      deprecated,
    });
  });

  it('shows its dates as soon as they are announced', () => {
    const now = new Date('2026-01-01T00:00:00.000Z');
    expect(toVersioningJson(versions(DEPRECATION, SUNSET), now)).toMatchObject({
      deprecation_date: DEPRECATION,
      sunset_date: SUNSET,
    });
    expect(toVersioningJson(versions(), now)).not.toHaveProperty('deprecation_date');
    expect(toVersioningJson(versions(DEPRECATION), now)).not.toHaveProperty('sunset_date');
  });
});

describe('renderRetirementHeaders', () => {
  it('renders no headers for a version without dates', () => {
    expect(renderRetirementHeaders(versions())).toEqual({});
  });

  it('renders the dates as RFC 9745 and RFC 8594 specify them, and a link', () => {
    expect(renderRetirementHeaders(versions(DEPRECATION, SUNSET))).toEqual({
      deprecation: '@1801440000',
      sunset: 'Tue, 01 Feb 2028 00:00:00 GMT',
      link: '<https://orders.example/docs/versioning>; rel="deprecation"; type="text/html"',
    });
    expect(renderRetirementHeaders(versions(DEPRECATION))).not.toHaveProperty('sunset');
  });
});
