import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort } from '../support/services/program.js';

type Service = { entrypoint: string[]; command: string[]; healthcheck: { test: string[] } };

const PASSWORD = 'counters';
const compose = load(readFileSync('docker-compose.yml', 'utf8'), {
  schema: CORE_SCHEMA.withTags(mergeTag),
}) as { services: { redis: Service } };
const { entrypoint, command, healthcheck } = compose.services.redis;

describe('the Redis of docker-compose.yml', () => {
  let port: number;
  let server: ChildProcess;

  beforeAll(async () => {
    port = await findFreePort();
    // As Compose does: a doubled $ is one. Another port, since 6379 of this machine may be in use.
    const [shell = '', ...args] = [...entrypoint, ...command].map((part) =>
      part
        .replaceAll('$$', '$')
        .replace('redis-server -', `redis-server - --port ${port} --bind 127.0.0.1`),
    );
    server = spawn(shell, args, {
      env: { PATH: process.env['PATH'], REDISCLI_AUTH: PASSWORD },
      stdio: 'ignore',
    });
    await eventually(
      () => query('').catch((error: unknown) => String(error)),
      (text) => text === 'PONG' || text.includes('NOAUTH'),
    );
  });
  afterAll(async () => {
    const exit = once(server, 'exit');
    server.kill('SIGKILL');
    await exit;
  });

  it('responds only to clients with its password', async () => {
    await expect(query('')).rejects.toThrow('NOAUTH');
    await expect(query(':guessed@')).rejects.toThrow();
    expect(await query(`:${PASSWORD}@`)).toBe('PONG');
  });

  it('hides the password from process listings', () => {
    expect(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8')).not.toContain(PASSWORD);
  });

  it('passes its own health check', async () => {
    const [, program = '', ...args] = healthcheck.test;
    const check = spawn(program, ['-p', String(port), ...args], {
      env: { PATH: process.env['PATH'], REDISCLI_AUTH: PASSWORD },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [output] = (await once(check.stdout, 'data')) as [Buffer];
    expect(output.toString().trim()).toBe('PONG');
  });

  async function query(credentials: string): Promise<string> {
    const client = new Redis(`redis://${credentials}127.0.0.1:${port}`, {
      lazyConnect: true,
      enableReadyCheck: false,
      disconnectTimeout: 100,
      retryStrategy: () => null,
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await client.ping();
    } finally {
      client.disconnect();
    }
  }
});
