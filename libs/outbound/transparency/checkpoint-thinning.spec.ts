import { describe, expect, it } from '@jest/globals';
import { findSuperfluous } from './checkpoint-thinning.js';

const NOW = new Date('2026-11-26T12:00:00Z');

const find = (...times: string[]) =>
  findSuperfluous(
    times.map((time) => ({ name: time, at: new Date(`${time}Z`) })),
    NOW,
  );

describe('thinning checkpoints', () => {
  it('keeps all of the last week', () => {
    expect(find('2026-11-19T12:01', '2026-11-19T12:02', '2026-11-26T11:58')).toEqual([]);
  });

  it('keeps the newest of each hour of the last year', () => {
    expect(
      find('2026-11-19T10:58', '2026-11-19T10:59', '2026-11-19T11:00', '2026-11-19T11:01'),
    ).toEqual(['2026-11-19T10:58', '2026-11-19T11:00']);
  });

  it('keeps the newest of each day before that', () => {
    expect(
      find('2025-11-24T01:00', '2025-11-24T23:59', '2025-11-25T00:00', '2025-11-25T17:00'),
    ).toEqual(['2025-11-24T01:00', '2025-11-25T00:00']);
  });

  it('keeps the newest of a day that lies on both sides of a limit', () => {
    expect(find('2025-11-26T11:10', '2025-11-26T11:50', '2025-11-26T12:10')).toEqual([
      '2025-11-26T11:10',
    ]);
    expect(find('2026-11-19T11:30', '2026-11-19T11:59', '2026-11-19T12:00')).toEqual([
      '2026-11-19T11:30',
    ]);
  });

  it('keeps files that were copied without their times', () => {
    expect(
      find('2026-11-01T10:00:00.000', '2026-11-01T10:00:00.040', '2026-11-01T10:00:00.900'),
    ).toEqual([]);
  });

  it('keeps the last file, and all whose times are not in their order', () => {
    expect(find('2024-01-01T00:00')).toEqual([]);
    expect(find('2024-01-02T00:00', '2024-01-01T00:00', '2024-01-02T01:00')).toEqual([]);
    expect(find()).toEqual([]);
  });
});
