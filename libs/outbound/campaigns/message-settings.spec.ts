import { expect, it } from '@jest/globals';
import { changeSettings, DEFAULT_SETTINGS } from './message-settings.js';

it('changes what is named, and leaves the rest', () => {
  expect(changeSettings(DEFAULT_SETTINGS, { quietFrom: '20:30' })).toEqual({
    quiet: { from: '20:30', to: '08:00' },
    maxPerWeek: 2,
  });
  expect(changeSettings(DEFAULT_SETTINGS, { maxPerWeek: 1 }).quiet).toEqual(DEFAULT_SETTINGS.quiet);
});

it('removes the quiet hours with both of their ends', () => {
  const none = changeSettings(DEFAULT_SETTINGS, { quietFrom: null, quietTo: null });
  expect(none.quiet).toBeNull();
  expect(() => changeSettings(DEFAULT_SETTINGS, { quietFrom: null })).toThrow(/quiet_from/);
  expect(() => changeSettings(none, { quietFrom: '20:00' })).toThrow(/quiet_to/);
});

it('refuses quiet hours of no length', () => {
  expect(() => changeSettings(DEFAULT_SETTINGS, { quietFrom: '08:00' })).toThrow(/differ/);
});
