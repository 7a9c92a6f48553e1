import { NotFoundException } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import type { Config } from '#kernel/config.js';
import { routeConfig } from './route-config.js';

type Availability = { isAvailable?: (config: Config) => boolean };

/** For methods: without these settings there is no such path (404), and no body that is sent there is read. */
export function AvailableWhen(isAvailable: (config: Config) => boolean): MethodDecorator {
  const config: Availability = { isAvailable };
  return routeConfig(config);
}

/** Refuses what the settings make unavailable. Behind the gate, so that these answers count as any other. */
export function refuseUnavailable(server: FastifyInstance, config: Config): void {
  server.addHook('onRequest', ({ routeOptions }, _reply, done) => {
    const { isAvailable } = routeOptions.config as Availability;
    if (isAvailable && !isAvailable(config)) throw new NotFoundException();
    done();
  });
}
