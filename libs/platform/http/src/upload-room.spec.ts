import { describe, expect, it } from '@jest/globals';
import { UploadRoom } from './upload-room.js';

const MIB = 1024 * 1024;

/** Reserves room, or fails the test. */
function reserve(room: UploadRoom, accountId: number, mib: number): () => void {
  const release = room.reserve(accountId, mib * MIB);
  if (typeof release === 'string') throw new Error(release);
  return release;
}

describe('UploadRoom', () => {
  it('has room for two uploads of an account, however small, and for those of others', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 0);
    reserve(room, 1, 0);
    expect(room.reserve(1, 1)).toBe('2 uploads of this account are still under way');
    reserve(room, 2, 0);
    release();
    reserve(room, 1, 0);
    expect(room.reserve(1, 1)).toMatch(/account/);
  });

  it('has room for 64 MiB of all accounts', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 20);
    reserve(room, 1, 20);
    reserve(room, 2, 20);
    expect(room.reserve(3, 4 * MIB + 1)).toBe('Too many files are being uploaded at once');
    reserve(room, 3, 4);
    expect(room.reserve(4, 1)).toMatch(/Too many/);
    release();
    reserve(room, 4, 20);
  });

  it('takes the room of an upload back once', () => {
    const room = new UploadRoom();
    const release = reserve(room, 1, 32);
    reserve(room, 1, 32);
    release();
    release();
    reserve(room, 1, 32);
    expect(room.reserve(2, 1)).toMatch(/Too many/);
    expect(room.reserve(1, 0)).toMatch(/account/);
  });
});
