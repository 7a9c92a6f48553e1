import { createTestEnvironment } from '../database/database.js';
import { eventually } from '../jest/eventually.js';
import { findFreePort, startProgram, type Program } from './program.js';
import { Client, type Service } from './service.js';

/** Another api process for the same store, which a test may kill. */
export async function startSecondApi(
  service: Service,
  store: Client,
  environment: NodeJS.ProcessEnv = {},
): Promise<{ program: Program; second: Client }> {
  const port = await findFreePort();
  const program = startProgram(
    'dist/apps/api/main.js',
    createTestEnvironment(service.database.url, {
      ...service.environment,
      PORT: String(port),
      LOG_LEVEL: 'fatal',
      ...environment,
    }),
  );
  service.onStop(() => program.kill('SIGTERM'));
  const second = new Client(`http://127.0.0.1:${port}`, store.accountId, store.token);
  await eventually(
    () =>
      second.get('/api/v1/status').then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  );
  return { program, second };
}
