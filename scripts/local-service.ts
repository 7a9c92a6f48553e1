import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';

const file = z.object({ base_url: z.string(), api_token: z.string(), account_id: z.number() });

export type LocalService = z.infer<typeof file>;

/**
 * Where a running `npm start` answers, and what it lets in with.
 * @throws with a sentence for the person at the shell
 */
export function localService(): LocalService {
  const path = join(resolve(process.env['DATA_DIR'] || '.data'), 'local.json');
  try {
    return file.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    throw new Error(`No running service found (${path}). Run npm start first, then this again.`, {
      cause,
    });
  }
}
