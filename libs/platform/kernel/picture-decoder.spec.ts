import { describe, expect, it } from '@jest/globals';
import { countScans } from './picture-decoder.js';

const SOI = [0xff, 0xd8];
const EOI = [0xff, 0xd9];
const SCAN = [0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0, 1, 2, 3];
const segment = (code: number, ...data: number[]) => [0xff, code, 0, data.length + 2, ...data];
const count = (...parts: number[][]) => countScans(Uint8Array.from(parts.flat()), 1000);

describe('countScans', () => {
  it('counts the SOS markers of a JPEG', () => {
    expect(count(SOI, segment(0xe0, 1, 2), SCAN, SCAN, segment(0xc4, 9), SCAN, EOI)).toBe(3);
  });

  it.each<[string, number[][]]>([
    ['nothing', []],
    ['SOI alone', [SOI]],
    ['a marker that ends the file', [SOI, [0xff]]],
    ['fill bytes that end the file', [SOI, [0xff, 0xff, 0xff]]],
    ['a segment whose length is missing', [SOI, [0xff, 0xe0]]],
    ['a segment that is cut off', [SOI, [0xff, 0xe0, 0xff, 0xff, 1]]],
    ['SOS inside the data of a segment, such as a preview', [SOI, segment(0xe1, ...SCAN), EOI]],
    ['SOS inside the header of a scan', [SOI, EOI, SCAN]],
    ['stuffed bytes', [SOI, [0xff, 0, 0xda, 0xff, 0xff, 0, 0xda], EOI]],
    ['a picture behind the end, as phones add', [SOI, EOI, SOI, SCAN, SCAN]],
  ])('finds no scans in %s', (_what, parts) => expect(count(...parts)).toBe(0));

  it.each<[string, number[]]>([
    ['fill bytes', [0xff, 0xff, 0xff]],
    ['bytes outside of any segment', [1, 2, 3, 0xda]],
    ['stuffed bytes', [0xff, 0, 0xff, 0xff, 0]],
    ['a restart marker', [0xff, 0xd0]],
    ['a restart marker and what looks like its length', [0xff, 0xd7, 0xff, 0xff]],
    ['TEM', [0xff, 0x01, 0xff, 0x7f]],
    ['another SOI', SOI],
    ['a reserved marker and what looks like its length', [0xff, 0x02, 0xff, 0x7f, 0]],
    ['another reserved marker', [0xff, 0xbf, 0xff, 0x7f, 0]],
    ['a segment of the length 0', [0xff, 0xe0, 0, 0]],
    ['a segment of the length 1', [0xff, 0xfe, 0, 1]],
    ['an empty segment', [0xff, 0xfe, 0, 2]],
    ['a segment of an unknown kind', segment(0xf3, 1, 2, 3)],
  ])('finds the scans behind %s', (_what, between) => {
    expect(count(SOI, between, SCAN, between, SCAN, EOI)).toBe(2);
  });

  it('counts up to a limit', () => {
    expect(countScans(Uint8Array.from(Array.from({ length: 50 }, () => SCAN).flat()), 7)).toBe(7);
  });

  it('counts scans that the length of another scan hides', () => {
    const long = [0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0];
    expect(count(SOI, long, long, long)).toBe(3);
  });

  it('counts the scans of the largest upload in under five seconds of a processor', () => {
    const hostile = new Uint8Array(2 * 1024 * 1024).fill(0xff);
    for (let i = 1; i < hostile.length; i += 2) hostile[i] = 0xd0;
    const start = process.cpuUsage();
    countScans(hostile, 101);
    countScans(new Uint8Array(2 * 1024 * 1024).fill(0xff), 101);
    expect(Math.max(...Object.values(process.cpuUsage(start)))).toBeLessThan(5_000_000);
  });
});
