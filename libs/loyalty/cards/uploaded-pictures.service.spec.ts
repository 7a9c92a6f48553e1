import { afterEach, describe, expect, it } from '@jest/globals';
import { mock } from 'node:test';
import type { Pool } from 'pg';
import type { Config } from '#configuration/config.js';
import type { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { OverloadError } from '#platform/kernel/errors.js';
import { UploadedPictures } from './uploaded-pictures.service.js';

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

afterEach(() => mock.timers.reset());

describe('UploadedPictures', () => {
  it('gives up a picture with 503 after 20 s, before its request is cut', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const pictures = new UploadedPictures({} as Pool, {} as CapOverrides, {} as Config);
    // The picture of another store, which is decoded for ever.
    void pictures['queue'].run(2, () => new Promise(() => undefined));
    const outcomes = Promise.allSettled([pictures.store(1, 'image/png', PNG)]);
    mock.timers.tick(20_000);
    const reason = expect.any(OverloadError) as unknown;
    expect(await outcomes).toEqual([{ status: 'rejected', reason }]);
  });
});
