import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '#platform/kernel/config-error.js';
import { assertUsable, renderOpeningStatement } from './session.js';

const PLACE = 'inkpad at db.example:5432';
const USABLE = { version: '18.4', version_number: 180_004, encoding: 'UTF8', is_standby: false };

describe('assertUsable', () => {
  it.each([
    ['the newest release', USABLE],
    ['the oldest supported release', { ...USABLE, version: '15.0', version_number: 150_000 }],
  ])('accepts %s', (_what, facts) => {
    expect(() => assertUsable(facts, PLACE)).not.toThrow();
  });

  it.each([
    ['14.19 (Debian)', 140_019],
    ['9.6.24', 90_624],
    ['15beta1', 149_999],
  ])('refuses PostgreSQL %s in one sentence', (version, version_number) => {
    expect(() => assertUsable({ ...USABLE, version, version_number }, PLACE)).toThrow(
      new ConfigError(
        `The database ${PLACE} is on PostgreSQL ${version}, but Inkpad needs PostgreSQL 15 or newer: upgrade the server, or name another one in DATABASE_URL.`,
      ),
    );
  });

  it.each(['LATIN1', 'SQL_ASCII', 'WIN1252', 'EUC_JP', 'MULE_INTERNAL'])(
    'refuses a database in %s in one sentence',
    (encoding) => {
      expect(() => assertUsable({ ...USABLE, encoding }, PLACE)).toThrow(
        new ConfigError(
          `The database ${PLACE} has the encoding ${encoding}, which does not hold every text: create one with create database … encoding 'UTF8' template template0, and name it in DATABASE_URL.`,
        ),
      );
    },
  );
});

describe('renderOpeningStatement', () => {
  it('adds settings of a connection to the pinned ones', () => {
    const text = renderOpeningStatement({ statement_timeout: '8s' });
    expect(text).toContain(`('datestyle', 'ISO, MDY', false)`);
    expect(text).toContain(`('statement_timeout', '8s', false)`);
  });

  it('sets what keeps values out of the log of the server only where the role may', () => {
    const text = renderOpeningStatement({});
    expect(text).toContain(`('log_parameter_max_length', '0', true)`);
    expect(text).toContain(`('log_error_verbosity', 'terse', true)`);
    expect(text).toContain(`(not is_restricted or has_parameter_privilege(name, 'set'))`);
  });

  it('writes no backslash, whose meaning depends on standard_conforming_strings', () => {
    expect(renderOpeningStatement({})).not.toContain('\\');
  });
});
