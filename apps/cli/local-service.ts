import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export type LocalService = { base_url: string; api_token: string; account_id: number };

/** Reads the URL and the token of a running `npm start`. @throws with a message for the terminal */
export function readLocalService(): LocalService {
  const path = join(resolve(process.env['DATA_DIR'] || '.data'), 'local.json');
  try {
    const { base_url, api_token, account_id } = JSON.parse(
      readFileSync(path, 'utf8'),
    ) as LocalService;
    if (!base_url || !api_token || !account_id) throw new Error(`${path} is incomplete`);
    return { base_url, api_token, account_id };
  } catch (cause) {
    throw new Error(`No running service found (${path}). Run npm start first, then try again.`, {
      cause,
    });
  }
}
