import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CreateAdminToken } from '#web/admin-api/admin-token.commands.js';
import { createMatcher, parseSteps } from '../support/guides/guide-parser.js';
import { cli, startService, type LocalService } from '../support/services/service.js';

/** Follows docs/guides/provision-stores: runs each sample in turn, and compares what comes with what is shown. */

let service: LocalService;
let token: string;

beforeAll(async () => {
  // Links for passwords need a mail server; what is sent stays in the database.
  service = await startService({
    MAIL_FROM: 'inkpad@shop.example',
    SMTP_URL: 'smtp://127.0.0.1:9',
  });
  ({ token } = await service.execute(new CreateAdminToken(cli, 'provisioning')));
});
afterAll(() => service.stop());

/** Not synchronously: the service runs in this process. */
async function run(command: string): Promise<unknown> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `${command} -sS --fail-with-body`], {
    env: { ...process.env, INKPAD_URL: service.baseUrl, INKPAD_ADMIN_TOKEN: token },
  });
  return stdout === '' ? undefined : (JSON.parse(stdout) as unknown);
}

describe('the guide for provisioning', () => {
  it('works as shown', async () => {
    const fences = parseSteps('provision-stores').flat();
    const requests = fences.flatMap(({ language, text }, i) => {
      if (language !== 'sh' || !text.startsWith('curl ')) return [];
      const sample = fences[i + 1];
      const isBody = sample?.language === 'json';
      return [
        { command: text, expected: isBody ? createMatcher(JSON.parse(sample.text)) : undefined },
      ];
    });
    expect(requests.length).toBe(7);
    for (const { command, expected } of requests) expect(await run(command)).toEqual(expected);
  });
});
