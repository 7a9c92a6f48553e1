import { expect, it } from '@jest/globals';
import { isUnsent } from './message-sending.service.js';

const BEFORE = { hasBegun: false, isStopped: false, isCut: false };

it.each([
  ['its recipient was erased, or another process has it', { ...BEFORE, isStopped: true }],
  ['the process ends', { ...BEFORE, isCut: true }],
])('counts no failure of a message that was not sent because %s', (_, state) => {
  expect(isUnsent({ kind: 'failed' }, state)).toBe(true);
});

it.each([
  ['the server is away', { kind: 'failed' }, BEFORE],
  ['it was cut off while it was handed over', { kind: 'failed' }, { ...BEFORE, hasBegun: true, isCut: true }], // prettier-ignore
  ['the server refused it before the process ended', { kind: 'refused' }, { ...BEFORE, isCut: true }], // prettier-ignore
  ['it was sent before the process ended', { kind: 'sent' }, { ...BEFORE, isCut: true }],
] as const)('keeps the outcome where %s', (_, outcome, state) => {
  expect(isUnsent(outcome, state)).toBe(false);
});
