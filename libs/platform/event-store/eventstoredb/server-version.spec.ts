import { expect, it } from '@jest/globals';
import { findVersionWarning } from './server-version.js';

it.each(['23.10.6', '24.10.14', '25.1.0', '26.0.3'])('version %s is supported', (version) => {
  expect(findVersionWarning(version)).toBeUndefined();
});

it.each([
  ['22.10.1', 'EventStoreDB 22.10.1'],
  ['24.6.0', 'EventStoreDB 24.6.0'],
  ['27.0.0', 'KurrentDB 27.0.0'],
])('version %s gets a warning', (version, server) => {
  expect(findVersionWarning(version)).toBe(
    `${server} is not supported: use EventStoreDB 23.10 or 24.10, or KurrentDB 25 or 26`,
  );
});
